"""Episodes: POST /episodes, POST /episodes/{id}/turns, GET and DELETE /episodes/{id}, GET /episodes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import AfterValidator, Field

from reward_server.api import examples
from reward_server.api.body import CONVERSATION
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of, within
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PagedQuery, Pager, plain_text
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import EpisodeStatus
from reward_server.transcripts.weight import weight
from trainer_client.wire import (
    CreateEpisodeRequest,
    CreateEpisodeResponse,
    EpisodeList,
    EpisodeResponse,
    TurnRequest,
    TurnResponse,
)

router = Router(prefix=API_PREFIX, tags=["episodes"])
EpisodeId = Annotated[str, Path(description="`ep_…`")]


@router.post("/episodes")
@operation(
    Operation(
        CreateEpisodeResponse,
        CreateEpisodeRequest,
        scopes=(Scope.TRAIN,),
        errors=(403, 404, 502),
        request_example=examples.CREATE_REQUEST,
        response_example=examples.CREATE_RESPONSE,
        retryable=True,
    )
)
async def create_episode(request: Request, lab: Caller) -> Response:
    """Begin an episode; the persona speaks first."""
    services = services_of(request)
    wanted = await body_as(CreateEpisodeRequest, request)
    work = services.episodes.create(lab, wanted, idempotency_key(request))
    body = await within(services.settings.request_deadline_s, work)
    request.state.trace["episode"] = body["episode_id"]
    return answer(request, body)


@router.post("/episodes/{episode_id}/turns")
@operation(
    Operation(
        TurnResponse,
        TurnRequest,
        scopes=(Scope.TRAIN,),
        errors=(403, 404, 502),
        request_example=examples.TURN_REQUEST,
        response_example=examples.TURN_RESPONSE,
        retryable=True,
    )
)
async def take_turn(request: Request, lab: Caller, episode_id: EpisodeId) -> Response:
    """Send the agent's message; get the persona's answer and the reward of the conversation so far."""
    services = services_of(request)
    wanted = await body_as(TurnRequest, request, CONVERSATION)
    await services.compute.charge(lab, weight(wanted.messages[-1]), turns=1)
    work = services.episodes.turn(lab, episode_id, wanted, idempotency_key(request))
    body = await within(services.settings.request_deadline_s, work)
    return answer(request, body)


@router.get("/episodes/{episode_id}")
@operation(
    Operation(EpisodeResponse, scopes=(Scope.TRAIN, Scope.EXPORT), errors=(404,), response_example=examples.EPISODE)
)
async def read_episode(request: Request, lab: Caller, episode_id: EpisodeId) -> Response:
    """The public transcript of an episode."""
    return answer(request, await services_of(request).episodes.get(lab, episode_id))


@router.delete("/episodes/{episode_id}")
@operation(Operation(EpisodeResponse, scopes=(Scope.TRAIN,), errors=(403, 404, 409), response_example=examples.EPISODE))
async def end_episode(request: Request, lab: Caller, episode_id: EpisodeId) -> Response:
    """End an active episode (`client_terminated`) and return it."""
    return answer(request, await services_of(request).episodes.end(lab, episode_id))


class EpisodeQuery(PagedQuery):
    """Query of the list."""

    collection_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(default=None, max_length=128)
    scenario_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(default=None, max_length=128)
    status: EpisodeStatus | None = None


@router.get("/episodes")
@operation(
    Operation(EpisodeList, scopes=(Scope.TRAIN, Scope.EXPORT), errors=(400,), response_example=examples.EPISODE_LIST)
)
async def list_episodes(request: Request, lab: Caller, query: Annotated[EpisodeQuery, Query()]) -> Response:
    """The lab's episodes, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.EPISODE)
    page = await services.episodes.page(
        lab,
        limit=query.limit,
        after=pager.after(query.cursor),
        collection=query.collection_slug,
        scenario=query.scenario_slug,
        status=query.status,
    )
    return answer(request, {"data": page.bodies, **pager.following(page.next)})
