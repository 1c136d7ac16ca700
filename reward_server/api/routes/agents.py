"""Agents, and the leaderboard of what they reached. Having one evaluated is a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import AfterValidator, Field

from reward_server.agents.service import document
from reward_server.api import examples
from reward_server.api.body import CONVERSATION
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PageQuery, Pager, plain_text
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from trainer_client.wire import (
    AgentChatRequest,
    AgentChatResponse,
    AgentList,
    AgentRequest,
    AgentResponse,
    LeaderboardResponse,
)

router = Router(prefix=API_PREFIX, tags=["agents"])
AgentId = Annotated[str, Path(description="`agent_…`")]
PLAY = (Scope.TRAIN,)
LOOK = (Scope.TRAIN, Scope.SCORE)


@router.post("/agents")
@operation(
    Operation(
        AgentResponse,
        AgentRequest,
        scopes=PLAY,
        errors=(409,),
        request_example=examples.AGENT_REQUEST,
        response_example=examples.AGENT,
        retryable=True,
    )
)
async def add_agent(request: Request, lab: Caller) -> Response:
    """Add an agent: an OpenAI-compatible endpoint that speaks for a policy. Its key is in no answer."""
    wanted = await body_as(AgentRequest, request)
    return answer(request, await services_of(request).agents.add(lab, wanted, idempotency_key(request)))


@router.get("/agents")
@operation(Operation(AgentList, scopes=LOOK, errors=(400,), response_example=examples.AGENTS))
async def list_agents(request: Request, lab: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """The lab's agents, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.AGENT)
    found = await services.agents.all(lab)
    shown, following = pager.page(found, query, lambda each: PageEnd(each.created_at, each.agent_id))
    return answer(request, {"data": [document(each) for each in shown], **following})


@router.get("/agents/{agent_id}")
@operation(Operation(AgentResponse, scopes=LOOK, errors=(404,), response_example=examples.AGENT))
async def read_agent(request: Request, lab: Caller, agent_id: AgentId) -> Response:
    """One agent."""
    return answer(request, document(await services_of(request).agents.get(lab, agent_id)))


@router.delete("/agents/{agent_id}")
@operation(Operation(AgentResponse, scopes=PLAY, errors=(404,), response_example=examples.AGENT))
async def delete_agent(request: Request, lab: Caller, agent_id: AgentId) -> Response:
    """Forget an agent, the key of its endpoint and its place on the leaderboard; its episodes stay."""
    return answer(request, await services_of(request).agents.delete(lab, agent_id))


@router.post("/agents/{agent_id}/chat")
@operation(
    Operation(
        AgentChatResponse,
        AgentChatRequest,
        scopes=PLAY,
        errors=(403, 404, 502),
        request_example=examples.AGENT_CHAT_REQUEST,
        response_example=examples.AGENT_CHAT,
    )
)
async def chat_with_agent(request: Request, lab: Caller, agent_id: AgentId) -> Response:
    """Ask an agent for its next turn. Nothing is stored, and nothing is scored."""
    wanted = await body_as(AgentChatRequest, request, CONVERSATION)
    return answer(request, await services_of(request).agents.chat(lab, agent_id, wanted))


class LeaderboardQuery(QueryModel):
    """Query of the leaderboard."""

    collection_slug: Annotated[str, AfterValidator(plain_text)] = Field(min_length=1, max_length=128)
    scenario_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(
        default=None, min_length=1, max_length=128, description="One scenario of the collection; without it, all."
    )
    scoring_version: Annotated[str, AfterValidator(plain_text)] | None = Field(
        default=None, min_length=1, max_length=64, description="`sv_…`; without it, the current version."
    )


@router.get("/leaderboard")
@operation(Operation(LeaderboardResponse, scopes=LOOK, errors=(400, 403, 404), response_example=examples.LEADERBOARD))
async def read_leaderboard(request: Request, lab: Caller, query: Annotated[LeaderboardQuery, Query()]) -> Response:
    """The lab's agents by mean reward in a collection, with 95 % intervals, under one scoring version."""
    board = services_of(request).leaderboard
    return answer(request, await board.of(lab, query.collection_slug, query.scenario_slug, query.scoring_version))
