"""The calls of agents and their leaderboard as data, like those in `calls`."""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client.calls import Call, MessageLike, checked, post, query_of, segment
from trainer_client.wire import (
    AgentChatRequest,
    AgentChatResponse,
    AgentList,
    AgentOptions,
    AgentRequest,
    AgentResponse,
    JobRequest,
    JobResponse,
    LeaderboardResponse,
)


def add(
    name: str,
    base_url: str,
    model: str,
    *,
    api_key: str | None = None,
    system_prompt: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    idempotency_key: str | None = None,
) -> Call[AgentResponse]:
    """POST /agents."""
    request = checked(
        AgentRequest,
        name=name,
        base_url=base_url,
        model=model,
        api_key=api_key,
        system_prompt=system_prompt,
        temperature=temperature,
        max_tokens=max_tokens,
    )
    return post("/agents", request, AgentResponse, idempotency_key)


def agents(*, limit: int | None = None, cursor: str | None = None) -> Call[AgentList]:
    """GET /agents."""
    return Call("GET", "/agents", AgentList, query=query_of(limit=limit, cursor=cursor))


def agent(agent_id: str) -> Call[AgentResponse]:
    """GET /agents/{id}."""
    return Call("GET", f"/agents/{segment(agent_id)}", AgentResponse)


def delete(agent_id: str) -> Call[AgentResponse]:
    """DELETE /agents/{id}."""
    return Call("DELETE", f"/agents/{segment(agent_id)}", AgentResponse)


def chat(
    agent_id: str,
    messages: Sequence[MessageLike],
    *,
    collection_slug: str | None = None,
    scenario_slug: str | None = None,
) -> Call[AgentChatResponse]:
    """POST /agents/{id}/chat."""
    request = checked(
        AgentChatRequest, messages=list(messages), collection_slug=collection_slug, scenario_slug=scenario_slug
    )
    return post(f"/agents/{segment(agent_id)}/chat", request, AgentChatResponse, None)


def evaluate(
    agent_id: str,
    collection_slug: str,
    scenario_slug: str | None = None,
    *,
    seeds: Sequence[int] | None = None,
    idempotency_key: str | None = None,
) -> Call[JobResponse]:
    """POST /jobs of type `evaluate_agent`."""
    options = checked(AgentOptions, agent_id=agent_id, seeds=None if seeds is None else list(seeds))
    request = checked(
        JobRequest,
        type="evaluate_agent",
        agent=options,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
    )
    return post("/jobs", request, JobResponse, idempotency_key)


def leaderboard(
    collection_slug: str, scenario_slug: str | None = None, *, scoring_version: str | None = None
) -> Call[LeaderboardResponse]:
    """GET /leaderboard."""
    query = query_of(collection_slug=collection_slug, scenario_slug=scenario_slug, scoring_version=scoring_version)
    return Call("GET", "/leaderboard", LeaderboardResponse, query=query)
