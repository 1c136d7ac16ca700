"""A policy behind an OpenAI-compatible endpoint, asked as the server asks an agent: tools, calls and their results.

An endpoint that refuses `tools` is told of them in words, and writes its calls as words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import httpx2

from trainer_client.agent import ChatMessage
from trainer_client.chat.thoughts import aloud
from trainer_client.chat.tools import in_chat, in_words, message_of, tagged
from trainer_client.wire import Message

TIMEOUT_S = 120.0
_REFUSES_TOOLS = (400, 404, 422, 501)


class EndpointError(RuntimeError):
    """The endpoint of a policy does not answer."""


class Endpoint:
    """Asks for one turn at a time."""

    def __init__(self, address: str, model: str, **sampling: Any) -> None:
        self.base = address.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
        self._body = {"model": model, **sampling}
        key = os.environ.get("OPENAI_API_KEY", "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S, trust_env=False)
        self.takes_tools = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def turn(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> Message:
        """The policy's next turn, in a scenario with these tools (OpenAI's form)."""
        if tools and self.takes_tools:
            answer = await self._post({"messages": in_chat(messages), "tools": [*tools]})
            if answer.status_code not in _REFUSES_TOOLS:
                return _message(answer)
            self.takes_tools = False
        said = [_in_words(message) for message in messages]
        return _message(await self._post({"messages": _with_tools(said, tools) if tools else said}))

    async def _post(self, body: Mapping[str, Any]) -> httpx2.Response:
        try:
            return await self._client.post(f"{self.base}/v1/chat/completions", json={**self._body, **body})
        except httpx2.TransportError as error:
            raise EndpointError(f"no answer from {self.base}: {str(error) or type(error).__name__}") from error


def _with_tools(messages: list[dict[str, str]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The same with the tools described in the system prompt."""
    words = in_words(tools)
    if messages[0]["role"] != "system":
        return [{"role": "system", "content": words}, *messages]
    return [{"role": "system", "content": f"{messages[0]['content']}\n\n{words}"}, *messages[1:]]


def _in_words(message: ChatMessage) -> dict[str, str]:
    """A message of the history with its calls as they were written."""
    calls = [tagged({"name": call["name"], "arguments": call["input"]}) for call in message.get("tool_calls", ())]
    return {"role": message["role"], "content": "\n".join(part for part in (message["content"], *calls) if part)}


def _message(answer: httpx2.Response) -> Message:
    if answer.status_code != 200:
        raise ValueError(f"the endpoint returned {answer.status_code}: {answer.text[:200]}")
    try:
        found = answer.json()["choices"][0]["message"]
        text, calls = found.get("content"), found.get("tool_calls")
    except (json.JSONDecodeError, LookupError, TypeError, AttributeError):
        raise ValueError(f"the endpoint's response is no chat completion: {answer.text[:200]}") from None
    if calls:
        return Message.model_validate({"role": "assistant", "content": aloud(text or ""), "tool_calls": calls})
    if not isinstance(text, str):
        raise ValueError("the endpoint's response has no text")  # noqa: TRY004 - of the other side, not of a caller
    return message_of(aloud(text))
