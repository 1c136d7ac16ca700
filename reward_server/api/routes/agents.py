"""Agents, and the leaderboard of what they reached. Having one evaluated is a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import AfterValidator, Field

from reward_server.agents.passes import PASSES_AT
from reward_server.agents.service import document
from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers, chat_answers
from reward_server.api.body import CONVERSATION, JsonBody
from reward_server.api.chat_stream import ChatStream
from reward_server.api.completing import completed
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
from reward_server.api.paging import PageQuery, Pager, plain_text
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from trainer_client.wire import (
    AgentChatRequest,
    AgentChatResponse,
    AgentList,
    AgentRequest,
    AgentResponse,
    ChangeAgentRequest,
    ChatCompletionRequest,
    ChatCompletionResponse,
    LeaderboardResponse,
)

router = Router(prefix=API_PREFIX, tags=["agents"])
AgentId = Annotated[str, Path(description="`agent_…`")]
PLAY = (Scope.TRAIN,)
LOOK = (Scope.TRAIN, Scope.SCORE)


@router.post("/agents", response_model=AgentResponse, responses=answers(examples.AGENT, 409))
async def add_agent(
    request: Request,
    lab: Annotated[Lab, for_keys(*PLAY)],
    wanted: Annotated[AgentRequest, JsonBody(example=examples.AGENT_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Add an agent: an OpenAI-compatible endpoint that speaks for a policy. Its key is in no answer."""
    return answer(request, await services_of(request).agents.add(lab, wanted, key))


@router.get("/agents", response_model=AgentList, responses=answers(examples.AGENTS, 400))
async def list_agents(
    request: Request, lab: Annotated[Lab, for_keys(*LOOK)], query: Annotated[PageQuery, Query()]
) -> Body:
    """The lab's agents, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.AGENT)
    agents = await services.agents.all(lab)
    shown, following = pager.page(agents, query, lambda each: PageEnd(each.created_at, each.agent_id))
    return answer(request, {"data": [document(each) for each in shown], **following})


@router.get("/agents/{agent_id}", response_model=AgentResponse, responses=answers(examples.AGENT, 404))
async def read_agent(request: Request, lab: Annotated[Lab, for_keys(*LOOK)], agent_id: AgentId) -> Body:
    """One agent."""
    return answer(request, document(await services_of(request).agents.get(lab, agent_id)))


@router.patch("/agents/{agent_id}", response_model=AgentResponse, responses=answers(examples.AGENT, 404))
async def change_agent(
    request: Request,
    lab: Annotated[Lab, for_keys(*PLAY)],
    agent_id: AgentId,
    wanted: Annotated[ChangeAgentRequest, JsonBody(example={"model": "anna-8b-step-400"})],
) -> Body:
    """Change an agent: its name, where it is or how it is asked. What it played before stays on the leaderboard."""
    return answer(request, await services_of(request).agents.change(lab, agent_id, wanted))


@router.delete("/agents/{agent_id}", response_model=AgentResponse, responses=answers(examples.AGENT, 404))
async def delete_agent(request: Request, lab: Annotated[Lab, for_keys(*PLAY)], agent_id: AgentId) -> Body:
    """Forget an agent, the key of its endpoint and its place on the leaderboard; its episodes stay."""
    return answer(request, await services_of(request).agents.delete(lab, agent_id))


@router.post("/agents/{agent_id}/chat", response_model=AgentChatResponse, responses=chat_answers(examples.AGENT_CHAT))
async def chat_with_agent(
    request: Request,
    lab: Annotated[Lab, for_keys(*PLAY)],
    agent_id: AgentId,
    wanted: Annotated[AgentChatRequest, JsonBody(CONVERSATION, example=examples.AGENT_CHAT_REQUEST)],
) -> Body | Response:
    """Ask an agent for its next turn. Nothing is stored, and nothing is scored. With `stream`, OpenAI's chunks."""
    agents = services_of(request).agents
    if wanted.stream:
        parts = agents.endpoints.stream(await agents.question(lab, agent_id, wanted))
        return await ChatStream.begun(request, lab, agent_id, parts, with_usage=wanted.with_usage)
    return answer(request, await agents.chat(lab, agent_id, wanted))


@router.post("/chat", response_model=ChatCompletionResponse, responses=chat_answers(examples.CHAT, 409))
async def chat(
    request: Request,
    lab: Annotated[Lab, for_keys(*PLAY)],
    wanted: Annotated[ChatCompletionRequest, JsonBody(CONVERSATION, example=examples.CHAT_REQUEST)],
) -> Body | Response:
    """Ask an agent, or the policy of a complete training run, for its next turn: a chat completion as OpenAI has it."""
    return await completed(request, lab, wanted)


class LeaderboardQuery(QueryModel):
    """Query of the leaderboard."""

    collection_slug: Annotated[str, AfterValidator(plain_text)] = Field(min_length=1, max_length=128)
    scenario_slug: Annotated[str, AfterValidator(plain_text)] | None = Field(
        default=None, min_length=1, max_length=128, description="One scenario of the collection; without it, all."
    )
    scoring_version: Annotated[str, AfterValidator(plain_text)] | None = Field(
        default=None, min_length=1, max_length=64, description="`sv_…`; without it, the current version."
    )
    passes_at: float = Field(
        default=PASSES_AT, ge=0.0, le=1.0, allow_inf_nan=False, description="The reward with which a seed passes."
    )


@router.get("/leaderboard", response_model=LeaderboardResponse, responses=answers(examples.LEADERBOARD, 400, 403, 404))
async def read_leaderboard(
    request: Request, lab: Annotated[Lab, for_keys(*LOOK)], query: Annotated[LeaderboardQuery, Query()]
) -> Body:
    """The lab's agents by mean reward in a collection, with 95 % intervals and pass^k, under one scoring version."""
    board = services_of(request).leaderboard
    version, passes_at = query.scoring_version, query.passes_at
    return answer(request, await board.of(lab, query.collection_slug, query.scenario_slug, version, passes_at))
