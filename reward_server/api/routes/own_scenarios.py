"""Scenarios of the lab's own: pushed as the files of a collection, in use once their check has passed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field

from reward_server.api import examples
from reward_server.api.body import CONVERSATIONS
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.authoring.service import document
from trainer_client.wire import OwnCollectionList, PulledCollection, PushRequest, PushResponse

router = Router(prefix=API_PREFIX, tags=["scenarios"])
Collection = Annotated[str, Path(max_length=128, description="`NAME` or `NAME@LAB`")]
AUTHORS = (Scope.AUTHOR,)


@router.post("/scenarios")
@operation(
    Operation(
        PushResponse,
        PushRequest,
        scopes=AUTHORS,
        errors=(409,),
        request_example=examples.PUSH_REQUEST,
        response_example=examples.PUSHED,
    )
)
async def push_scenarios(request: Request, lab: Caller) -> Response:
    """Bring a collection of the lab's own; a job checks it, and it is in use once it has passed."""
    wanted = await body_as(PushRequest, request, CONVERSATIONS)
    return answer(request, await services_of(request).own_scenarios.push(lab, wanted))


@router.get("/scenarios")
@operation(Operation(OwnCollectionList, scopes=AUTHORS, response_example=examples.OWN_COLLECTIONS))
async def list_own_scenarios(request: Request, lab: Caller) -> Response:
    """The lab's own collections."""
    rows = await services_of(request).own_scenarios.all(lab)
    return answer(request, {"data": [document(row) for row in rows]})


class VersionQuery(QueryModel):
    """Query of a collection."""

    version: int | None = Field(default=None, ge=1, description="The newest unless it is given.")


@router.get("/scenarios/{collection}")
@operation(Operation(PulledCollection, scopes=AUTHORS, errors=(400, 404), response_example=examples.PULLED))
async def pull_scenarios(
    request: Request, lab: Caller, collection: Collection, query: Annotated[VersionQuery, Query()]
) -> Response:
    """The files of a version, and what its check found."""
    return answer(request, await services_of(request).own_scenarios.pull(lab, collection, query.version))


@router.delete("/scenarios/{collection}")
@operation(Operation(PushResponse, scopes=AUTHORS, errors=(404,), response_example=examples.PUSHED))
async def delete_own_scenarios(request: Request, lab: Caller, collection: Collection) -> Response:
    """Forget all versions of a collection; what was scored by it stays."""
    return answer(request, await services_of(request).own_scenarios.delete(lab, collection))
