"""GET /drift: whether scenarios pay the lab differently from how they used to."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from pydantic import Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.context import API_PREFIX, Body, answer, services_of
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from trainer_client.wire import DriftResponse

router = Router(prefix=API_PREFIX, tags=["learned models"])


class DriftQuery(QueryModel):
    """Query of drift."""

    collection_slug: str | None = Field(default=None, min_length=1, max_length=128)


@router.get("/drift", response_model=DriftResponse, responses=answers(examples.DRIFT, 400, 403, 404))
async def read_drift(
    request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE, Scope.EXPORT)], query: Annotated[DriftQuery, Query()]
) -> Body:
    """By scenario, the lab's latest 100 rewards against up to 1,000 before them, in standard deviations."""
    return answer(request, {"data": await services_of(request).drift.of(lab, query.collection_slug)})
