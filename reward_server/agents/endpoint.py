"""Asks an agent behind an OpenAI-compatible endpoint for one turn, once, through the SDK.

The address is checked anew for every turn, as webhooks' are. What is wrong with the endpoint is told in a word: neither
what it was asked nor what it answered is in an error or a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2

from reward_server.agents.completion import MAX_ANSWER_BYTES, WHO, EndpointTurn, failed_by, refusal_of, turn_of
from reward_server.agents.pinned import PinnedTransport
from reward_server.agents.streaming import AnswerPart, bound_stream, parts_of
from reward_server.errors import AgentFailed
from reward_server.llm.base import LlmFailed
from reward_server.llm.transport import AttemptProgress, attempt, bound_error_body, read_json, silence, timeout_of
from reward_server.settings import PREFIX
from reward_server.webhooks.addresses import LIMITS, PrivateAddress, RefusedAddress, UnresolvedName, resolve
from reward_server.webhooks.names import NameLookups

if TYPE_CHECKING:
    import openai

NO_KEY = "none"
"""Servers without keys take any; the SDK wants one."""
ALLOWING = f"{PREFIX}PRIVATE_ADDRESSES"
"""The setting that allows endpoints in the server's own network."""


@dataclass(frozen=True)
class EndpointAddress:
    """The address of an agent, and how it is asked."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class ChatQuestion:
    """A conversation that somebody is to go on with."""

    place: EndpointAddress
    messages: Sequence[Mapping[str, Any]] = field(repr=False)
    tools: Sequence[Mapping[str, Any]] = ()
    private: bool = False
    """Whether it is for a server that this one has started itself."""


class Endpoints:
    """All endpoints of all labs, over one pool of connections; close it."""

    def __init__(self, *, private: bool, names: NameLookups, timeout_s: float) -> None:
        silence("openai")
        self._private = private
        self._names = names
        self._timeout_s = timeout_s
        self._pool = httpx2.AsyncHTTPTransport(limits=LIMITS)

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.aclose()

    async def ask(self, question: ChatQuestion) -> EndpointTurn:
        """The agent's next turn.

        Raises:
            AgentFailed: it gave none; the message names the cause.
        """
        # The SDK takes a second to load: only a server with agents loads it, and never on the event loop.
        await asyncio.to_thread(import_module, "openai")
        client = await self._client(question)
        request = _request(question)

        async def send(progress: AttemptProgress) -> Mapping[str, Any]:
            async with client.chat.completions.with_streaming_response.create(
                **request, timeout=timeout_of(self._timeout_s)
            ) as response:
                progress.began = True
                found: Mapping[str, Any] = await read_json(response.headers, response.iter_bytes(), MAX_ANSWER_BYTES)
            return found

        try:
            return turn_of(await attempt(send, self._timeout_s, refusal_of=refusal_of, who=WHO))
        except LlmFailed as failed:
            failure = failed_by(failed)
        raise failure

    async def stream(self, question: ChatQuestion) -> AsyncGenerator[AnswerPart, None]:
        """The same turn in parts as the endpoint says them; `AgentFailed` in front of any of them. Close it."""
        await asyncio.to_thread(import_module, "openai")
        client = await self._client(question)
        async with aclosing(parts_of(client, _request(question), self._timeout_s)) as parts:
            async for part in parts:
                yield part

    async def _client(self, question: ChatQuestion) -> openai.AsyncOpenAI:
        import openai

        place, private = question.place, question.private or self._private
        try:
            target = await resolve(place.base_url, private=private, names=self._names)
        except UnresolvedName:
            raise AgentFailed.because("its name has no address") from None
        except PrivateAddress:
            raise AgentFailed.because(f"its address is allowed only with {ALLOWING}=true") from None
        except RefusedAddress:
            raise AgentFailed.because("its address is not allowed here") from None
        # Made for each turn: the address is a part of it. The pool is not, and the environment's proxies play no part.
        http = httpx2.AsyncClient(
            transport=PinnedTransport(self._pool, target),
            trust_env=False,
            follow_redirects=False,
            event_hooks={"response": [bound_error_body, bound_stream]},
        )
        return openai.AsyncOpenAI(
            api_key=place.api_key or NO_KEY, base_url=place.base_url, max_retries=0, http_client=http
        )


def _request(question: ChatQuestion) -> dict[str, Any]:
    place = question.place
    request: dict[str, Any] = {"model": place.model, "messages": list(question.messages)}
    options = {
        "temperature": place.temperature,
        "max_tokens": place.max_tokens,
        "tools": list(question.tools) or None,
    }
    return request | {name: value for name, value in options.items() if value is not None}
