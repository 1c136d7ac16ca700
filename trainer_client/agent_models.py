"""Agents to build with: a model behind an OpenAI-compatible endpoint, the same with tools, and one without a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
from pydantic import ValidationError

from trainer_client.agent import AgentReply, ChatMessage
from trainer_client.chat.thoughts import aloud
from trainer_client.chat.tools import for_template, in_chat
from trainer_client.client import LabsClient
from trainer_client.wire import ToolCall
from trainer_client.wire.episodes import ToolDefinition


class StubAgent:
    """Says fixed lines in turn, and the last one from then on. For tests and CI: it needs no model."""

    def __init__(self, lines: Sequence[str] = ("Tell me more.", "Thank you.")) -> None:
        if not lines:
            raise ValueError("give at least one line")
        self._lines = list(lines)

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """The line of this turn."""
        turn = sum(message["role"] == "assistant" for message in messages)
        return self._lines[min(turn, len(self._lines) - 1)]


class MultiTurnAgent:
    """A model behind `/chat/completions` (vLLM, SGLang, llama.cpp, Ollama, OpenAI). Thoughts are left out.

    A failing endpoint raises, and the episode that asked is errored: nothing is made up.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        system: str | None = None,
        timeout_s: float = 120.0,
        **sampling: Any,
    ) -> None:
        """`base_url` ends with `/v1`. `sampling` goes into each request, such as `temperature=0.7`."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(base_url=base_url.rstrip("/") + "/", headers=headers, timeout=timeout_s)
        self._system, self._body = system, {"model": model, **sampling}

    async def __call__(self, messages: Sequence[ChatMessage]) -> AgentReply:
        """The model's turn."""
        answer = await self._client.post("chat/completions", json=self._request(messages))
        answer.raise_for_status()
        return _reply(answer.json()["choices"][0]["message"])

    def _request(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        shown = in_chat([dict(message) for message in messages])
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        return {**self._body, "messages": [*system, *shown]}

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class ToolAgent(MultiTurnAgent):
    """A `MultiTurnAgent` that may call tools: those of a scenario, or definitions of your own."""

    def __init__(
        self, base_url: str, model: str, api_key: str | None = None, *, tools: Sequence[ToolDefinition], **options: Any
    ) -> None:
        super().__init__(base_url, model, api_key, **options)
        self._body["tools"] = for_template(tools)

    @staticmethod
    def tools_of(client: LabsClient, collection: str, scenario: str) -> list[ToolDefinition]:
        """The tools of a scenario, from its card in the catalog."""
        return client.scenario(collection, scenario).tool_definitions or []


def _reply(message: dict[str, Any]) -> AgentReply:
    calls = []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        given = function.get("arguments") or "{}"
        try:
            calls.append(ToolCall(name=function["name"], input=json.loads(given) if isinstance(given, str) else given))
        except (ValueError, ValidationError) as error:
            raise ValueError(f"the model called {function['name']!r} with arguments that are no JSON object") from error
    return AgentReply(aloud(message.get("content") or ""), tuple(calls))
