"""`agents` of the synchronous client: add, talk to, have evaluated, compare.

Made from `async_agents.py` by `unasync`: edit that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client import agent_calls
from trainer_client.calls import MessageLike
from trainer_client.jobs import Send
from trainer_client.paging import Page
from trainer_client.wire import AgentChatResponse, AgentResponse, AgentSummary, JobResponse, LeaderboardResponse


class Agents:
    """Policies that the server talks to: `client.agents`."""

    def __init__(self, send: Send) -> None:
        self._send = send

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
    ) -> AgentResponse:
        """Add an OpenAI-compatible endpoint; the server keeps its key and shows it to nobody."""
        return self._send(
            agent_calls.add(
                name,
                base_url,
                model,
                api_key=api_key,
                system_prompt=system_prompt,
                temperature=temperature,
                max_tokens=max_tokens,
                idempotency_key=idempotency_key,
            )
        )

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AgentSummary]:
        """The lab's agents, newest first."""
        return Page[AgentSummary].of(self._send, agent_calls.agents(limit=limit, cursor=cursor))

    def get(self, agent_id: str) -> AgentResponse:
        """One agent."""
        return self._send(agent_calls.agent(agent_id))

    def delete(self, agent_id: str) -> AgentResponse:
        """Delete an agent with its key and its row on the leaderboard."""
        return self._send(agent_calls.delete(agent_id))

    def chat(
        self,
        agent_id: str,
        messages: Sequence[MessageLike],
        *,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
    ) -> AgentChatResponse:
        """The agent's next turn; with a scenario it is told what it is told in an evaluation."""
        call = agent_calls.chat(agent_id, messages, collection_slug=collection_slug, scenario_slug=scenario_slug)
        return self._send(call)

    def evaluate(
        self,
        agent_id: str,
        collection_slug: str,
        scenario_slug: str | None = None,
        *,
        seeds: Sequence[int] | None = None,
        idempotency_key: str | None = None,
    ) -> JobResponse:
        """Queue a job in which the agent plays every scenario with every seed; `client.jobs.wait` waits for it."""
        call = agent_calls.evaluate(
            agent_id, collection_slug, scenario_slug, seeds=seeds, idempotency_key=idempotency_key
        )
        return self._send(call)

    def leaderboard(
        self, collection_slug: str, scenario_slug: str | None = None, *, scoring_version: str | None = None
    ) -> LeaderboardResponse:
        """The lab's agents by mean reward, with intervals, under one scoring version."""
        call = agent_calls.leaderboard(collection_slug, scenario_slug, scoring_version=scoring_version)
        return self._send(call)
