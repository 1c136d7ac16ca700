"""Episodes: POST /episodes, POST /episodes/{id}/turns, GET and DELETE /episodes/{id}, GET /episodes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import AfterValidator, Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATION, JsonBody
from reward_server.api.charged import played
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of, within
from reward_server.api.paging import PagedQuery, Pager, plain_text
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import EpisodeStatus
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


@router.post(
    "/episodes", response_model=CreateEpisodeResponse, responses=answers(examples.CREATE_RESPONSE, 403, 404, 502)
)
async def create_episode(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    wanted: Annotated[CreateEpisodeRequest, JsonBody(example=examples.CREATE_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Begin an episode; the persona speaks first."""
    services = services_of(request)
    work = services.episodes.create(lab, wanted, key)
    body = await within(services.settings.request_deadline_s, work)
    request.state.trace["episode"] = body["episode_id"]
    return answer(request, body)


@router.hot(
    "/episodes/{episode_id}/turns",
    response_model=TurnResponse,
    responses=answers(examples.TURN_RESPONSE, 403, 404, 502),
)
async def take_turn(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    episode_id: EpisodeId,
    wanted: Annotated[TurnRequest, JsonBody(CONVERSATION, example=examples.TURN_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Send the agent's message; get the persona's answer and the reward of the conversation so far."""
    return answer(request, await played(services_of(request), lab, episode_id, wanted, key))


@router.get("/episodes/{episode_id}", response_model=EpisodeResponse, responses=answers(examples.EPISODE, 404))
async def read_episode(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN, Scope.EXPORT)], episode_id: EpisodeId
) -> Body:
    """The public transcript of an episode."""
    return answer(request, await services_of(request).episodes.get(lab, episode_id))


@router.delete(
    "/episodes/{episode_id}", response_model=EpisodeResponse, responses=answers(examples.EPISODE, 403, 404, 409)
)
async def end_episode(request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], episode_id: EpisodeId) -> Body:
    """End an active episode (`client_terminated`) and return it."""
    return answer(request, await services_of(request).episodes.end(lab, episode_id))


class EpisodeQuery(PagedQuery):
    """Query of the list."""

    collection_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(default=None, max_length=128)
    scenario_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(default=None, max_length=128)
    status: EpisodeStatus | None = None


@router.get("/episodes", response_model=EpisodeList, responses=answers(examples.EPISODE_LIST, 400))
async def list_episodes(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN, Scope.EXPORT)], query: Annotated[EpisodeQuery, Query()]
) -> Body:
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
