"""Asks an agent behind an OpenAI-compatible endpoint for one turn, once, through the SDK.

The address is checked anew for every turn, as webhooks' are. What is wrong with the endpoint is told in a word: neither
what it was asked nor what it answered is in an error or a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2
from pydantic import ValidationError

from reward_server.agents.pinned import PinnedTransport
from reward_server.errors import AgentFailed
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.transport import (
    AttemptProgress,
    RefusedResponse,
    attempt,
    bound_error_body,
    count,
    read_json,
    sendable,
    silence,
    timeout_of,
)
from reward_server.settings import PREFIX
from reward_server.webhooks.addresses import LIMITS, PrivateAddress, RefusedAddress, UnresolvedName, resolve
from reward_server.webhooks.names import NameLookups
from trainer_client.wire import Message, ToolCall
from trainer_client.wire.base import REASONING_FIELDS

if TYPE_CHECKING:
    import openai

MAX_ANSWER_BYTES = 1_048_576
NO_KEY = "none"
"""Servers without keys take any; the SDK wants one."""
ALLOWING = f"{PREFIX}AGENT_PRIVATE_ADDRESSES"
"""The setting that allows endpoints in the server's own network."""
CAUSES: Mapping[FailureKind, str] = {
    FailureKind.RATE_LIMITED: "it limits the rate (429)",
    FailureKind.OVERLOADED: "it answered with a server error",
    FailureKind.TIMEOUT: "it did not answer in time",
    FailureKind.HANG: "it did not finish its answer in time",
    FailureKind.RESET: "the connection could not be made, or broke",
    FailureKind.UNAUTHORISED: "it refuses the API key",
    FailureKind.NOT_FOUND: "the path or the model does not exist",
    FailureKind.MALFORMED: "its answer is no chat completion, or holds a message that the contract does not allow",
    FailureKind.EMPTY: "its answer is empty",
    FailureKind.TOO_LARGE: "its answer, or the conversation, is too long",
    FailureKind.REFUSED: "it declined to answer",
    FailureKind.REJECTED: "it refuses the request",
}


@dataclass(frozen=True)
class EndpointAddress:
    """The address of an agent, and how it is asked."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class EndpointTurn:
    """The turn of an agent behind an endpoint."""

    message: Message = field(repr=False)
    input_tokens: int = 0
    output_tokens: int = 0


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

    async def ask(
        self,
        place: EndpointAddress,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        private: bool = False,
    ) -> EndpointTurn:
        """The agent's next turn. `private`: of a server that this one has started itself.

        Raises:
            AgentFailed: it gave none; the message names the cause.
        """
        # The SDK takes a second to load: only a server with agents loads it, and never on the event loop.
        await asyncio.to_thread(import_module, "openai")
        client = await self._client(place, private=private or self._private)
        request: dict[str, Any] = {"model": place.model, "messages": list(messages)}
        options = {"temperature": place.temperature, "max_tokens": place.max_tokens, "tools": list(tools) or None}
        request |= {name: value for name, value in options.items() if value is not None}

        async def send(progress: AttemptProgress) -> Mapping[str, Any]:
            async with client.chat.completions.with_streaming_response.create(
                **request, timeout=timeout_of(self._timeout_s)
            ) as response:
                progress.began = True
                found: Mapping[str, Any] = await read_json(response.headers, response.iter_bytes(), MAX_ANSWER_BYTES)
            return found

        try:
            return _turn(await attempt(send, self._timeout_s, refusal_of=_refusal, who={"provider": "agent"}))
        except LlmFailed as failed:
            cause = CAUSES.get(failed.kind, failed.kind.value)
        raise AgentFailed.because(cause)

    async def _client(self, place: EndpointAddress, *, private: bool) -> openai.AsyncOpenAI:
        import openai

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
            event_hooks={"response": [bound_error_body]},
        )
        return openai.AsyncOpenAI(
            api_key=place.api_key or NO_KEY, base_url=place.base_url, max_retries=0, http_client=http
        )


def _turn(completion: Mapping[str, Any]) -> EndpointTurn:
    """The message of a completion, as the contract has it."""
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    said = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(said, dict):
        raise LlmFailed(FailureKind.MALFORMED if choices else FailureKind.EMPTY)
    message = _message(said)
    # Who thought and then said nothing has had a turn; who answered nothing at all has failed.
    if not message.content.strip() and not message.tool_calls and not any(map(said.get, REASONING_FIELDS)):
        raise LlmFailed(FailureKind.REFUSED if said.get("refusal") else FailureKind.EMPTY)
    usage = completion.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return EndpointTurn(message, count(counts.get("prompt_tokens")), count(counts.get("completion_tokens")))


def _message(said: Mapping[str, Any]) -> Message:
    content = said.get("content")
    try:
        calls = [ToolCall.model_validate(call) for call in said.get("tool_calls") or ()]
        message = Message(role="assistant", content="" if content is None else content, tool_calls=calls or None)
    except (ValidationError, TypeError):
        raise LlmFailed(FailureKind.MALFORMED) from None
    if "\x00" in message.content or message.content != sendable(message.content):
        raise LlmFailed(FailureKind.MALFORMED)
    return message


def _refusal(error: Exception) -> RefusedResponse | None:
    import openai

    if not isinstance(error, openai.APIStatusError):
        return None
    # It is the lab that is told of it, so operators' logs need no hint.
    return RefusedResponse(status=error.status_code, headers=error.response.headers, told=True)
