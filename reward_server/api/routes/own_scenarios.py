"""Scenarios of the lab's own: pushed as the files of a collection, in use once their check has passed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import API_PREFIX, Body, answer, services_of
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.authoring.service import document
from trainer_client.wire import OwnCollectionList, PulledCollection, PushRequest, PushResponse

router = Router(prefix=API_PREFIX, tags=["scenarios"])
Collection = Annotated[str, Path(max_length=128, description="`NAME` or `NAME@LAB`")]
Author = Annotated[Lab, for_keys(Scope.AUTHOR)]


@router.post("/scenarios", response_model=PushResponse, responses=answers(examples.PUSHED, 409))
async def push_scenarios(
    request: Request,
    lab: Author,
    wanted: Annotated[PushRequest, JsonBody(CONVERSATIONS, example=examples.PUSH_REQUEST)],
) -> Body:
    """Bring a collection of the lab's own; a job checks it, and it is in use once it has passed."""
    return answer(request, await services_of(request).own_scenarios.push(lab, wanted))


@router.get("/scenarios", response_model=OwnCollectionList, responses=answers(examples.OWN_COLLECTIONS))
async def list_own_scenarios(request: Request, lab: Author) -> Body:
    """The lab's own collections."""
    rows = await services_of(request).own_scenarios.all(lab)
    return answer(request, {"data": [document(row) for row in rows]})


class VersionQuery(QueryModel):
    """Query of a collection."""

    version: int | None = Field(default=None, ge=1, description="The newest unless it is given.")


@router.get("/scenarios/{collection}", response_model=PulledCollection, responses=answers(examples.PULLED, 400, 404))
async def pull_scenarios(
    request: Request, lab: Author, collection: Collection, query: Annotated[VersionQuery, Query()]
) -> Body:
    """The files of a version, and what its check found."""
    return answer(request, await services_of(request).own_scenarios.pull(lab, collection, query.version))


@router.delete("/scenarios/{collection}", response_model=PushResponse, responses=answers(examples.PUSHED, 404))
async def delete_own_scenarios(request: Request, lab: Author, collection: Collection) -> Body:
    """Forget all versions of a collection; what was scored by it stays."""
    return answer(request, await services_of(request).own_scenarios.delete(lab, collection))
