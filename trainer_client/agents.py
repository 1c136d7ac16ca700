"""`client.agents`: add, talk to, have evaluated, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_client.calls import Call, MessageLike, checked, post, query_of, segment
from trainer_client.methods import AsyncCallGroup, CallGroup, method, pages_of
from trainer_client.wire import (
    AgentChatRequest,
    AgentChatResponse,
    AgentList,
    AgentOptions,
    AgentRequest,
    AgentResponse,
    AgentSummary,
    ChangeAgentRequest,
    ChatCompletionRequest,
    ChatCompletionResponse,
    JobRequest,
    JobResponse,
    LeaderboardResponse,
)


class AgentCalls:
    """Policies that the server talks to."""

    @method
    def add(
        self,
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
        """Add an OpenAI-compatible endpoint; the server keeps its key and shows it to nobody."""
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

    @pages_of(AgentSummary)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Call[AgentList]:
        """The lab's agents, newest first."""
        return Call("GET", "/agents", AgentList, query=query_of(limit=limit, cursor=cursor))

    @method
    def get(self, agent_id: str) -> Call[AgentResponse]:
        """One agent."""
        return Call("GET", f"/agents/{segment(agent_id)}", AgentResponse)

    @method
    def change(self, agent_id: str, changes: ChangeAgentRequest | Mapping[str, Any]) -> Call[AgentResponse]:
        """Change what is named, such as `{"model": "step-400"}`; `None` takes a value away."""
        request = ChangeAgentRequest.model_validate(changes)
        body = request.model_dump_json(exclude_unset=True).encode()
        return Call("PATCH", f"/agents/{segment(agent_id)}", AgentResponse, body=body)

    @method
    def delete(self, agent_id: str) -> Call[AgentResponse]:
        """Delete an agent with its key and its row on the leaderboard."""
        return Call("DELETE", f"/agents/{segment(agent_id)}", AgentResponse)

    @method
    def chat(
        self,
        agent_id: str,
        messages: Sequence[MessageLike],
        *,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
    ) -> Call[AgentChatResponse]:
        """The agent's next turn; with a scenario it is told what it is told in an evaluation."""
        request = checked(
            AgentChatRequest, messages=list(messages), collection_slug=collection_slug, scenario_slug=scenario_slug
        )
        return post(f"/agents/{segment(agent_id)}/chat", request, AgentChatResponse, None)

    @method
    def complete(
        self,
        model: str,
        messages: Sequence[MessageLike],
        *,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> Call[ChatCompletionResponse]:
        """The next turn of an agent (`agent_…`) or of a complete training run (`run_…`), as a chat completion."""
        request = checked(
            ChatCompletionRequest,
            model=model,
            messages=list(messages),
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            temperature=temperature,
            max_tokens=max_tokens,
        )
        return post("/chat", request, ChatCompletionResponse, None)

    @method
    def evaluate(
        self,
        agent_id: str,
        collection_slug: str,
        scenario_slug: str | None = None,
        *,
        seeds: Sequence[int] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[JobResponse]:
        """Queue a job in which the agent plays every scenario with every seed; `client.jobs.wait` waits for it."""
        options = checked(AgentOptions, agent_id=agent_id, seeds=None if seeds is None else list(seeds))
        request = checked(
            JobRequest,
            type="evaluate_agent",
            agent=options,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
        )
        return post("/jobs", request, JobResponse, idempotency_key)

    @method
    def leaderboard(
        self,
        collection_slug: str,
        scenario_slug: str | None = None,
        *,
        scoring_version: str | None = None,
        passes_at: float | None = None,
    ) -> Call[LeaderboardResponse]:
        """The lab's agents by mean reward, with intervals and pass^k, under one scoring version."""
        query = query_of(
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            scoring_version=scoring_version,
            passes_at=passes_at,
        )
        return Call("GET", "/leaderboard", LeaderboardResponse, query=query)


class AgentsClient(AgentCalls, CallGroup):
    """`agents` of the synchronous client."""


class AsyncAgentsClient(AgentCalls, AsyncCallGroup):
    """`agents` of the asynchronous client."""
