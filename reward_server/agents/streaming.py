"""Reads an endpoint's answer in parts, as its server says them, through the SDK.

Each part is checked as a whole answer is, so nothing is passed on that the contract does not allow; what can only be
known at the end (an answer without words, say) is an error behind the parts that were there.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from reward_server.agents.completion import FINISHES, MAX_ANSWER_BYTES, STOP, WHO, failed_by, refusal_of, turn_of
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.transport import AttemptProgress, attempt, read_json, sendable, timeout_of
from reward_server.store.records import JsonObject
from trainer_client.wire.base import MAX_CONTENT_CHARACTERS, MAX_OBJECT_CHARACTERS, REASONING_FIELDS

if TYPE_CHECKING:
    import openai

EVENTS = "text/event-stream"
MAX_STREAM_BYTES = 16_777_216
"""An event for each token, thoughts included, is some hundred bytes for a few characters."""
MOST_CALLS = 16
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Some words of an answer, or some of its tool calls, in OpenAI's shape of a delta; or its end."""

    delta: JsonObject = field(repr=False, default_factory=dict)
    finish: str | None = None
    """Why it ended; of the last part alone."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Of the last part; 0 where the endpoint does not say."""


async def parts_of(
    client: openai.AsyncOpenAI, request: Mapping[str, Any], timeout_s: float
) -> AsyncGenerator[AnswerPart, None]:
    """The parts of an answer, and its end; `AgentFailed` where there is none, or no more."""
    until = time.monotonic() + timeout_s
    answer = AnswerSoFar()
    async with AsyncExitStack() as stack:

        async def begin(_: AttemptProgress) -> _Events:
            # By the types of the SDK, a request would have to be spelt out.
            make: Any = client.chat.completions.with_streaming_response.create
            options = {"include_usage": True}
            opened = make(**request, stream=True, stream_options=options, timeout=timeout_of(timeout_s))
            response = await stack.enter_async_context(opened)
            if EVENTS in response.headers.get("content-type", ""):
                return _Events(aiter(await response.parse()))
            # Some servers know no streams, and answer as ever.
            whole = await read_json(response.headers, response.iter_bytes(), MAX_ANSWER_BYTES)
            return _Events(_told_at_once(whole))

        events = await _in_time(begin, until)
        while (event := await _in_time(events.following, until)) is not None:
            part = _or_failed(answer.take, event)
            if part is not None:
                yield part
    yield _or_failed(answer.end)


class AnswerSoFar:
    """What an endpoint has said of an answer."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._characters = 0
        self._calls: dict[int, dict[str, Any]] = {}
        self._thought = False
        self._refusal = ""
        self._finish: str | None = None
        self._usage: object = None

    def take(self, event: Mapping[str, Any]) -> AnswerPart | None:
        """What an event adds that is for whoever asked; `LlmFailed` where it may not be passed on."""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return None
        finish = choice.get("finish_reason")
        self._finish = (finish if finish in FINISHES else STOP) if finish else self._finish
        said = choice.get("delta")
        if not isinstance(said, dict):
            return None
        self._thought = self._thought or any(map(said.get, REASONING_FIELDS))
        self._refusal = self._refusal or str(said.get("refusal") or "")
        delta: JsonObject = {}
        if text := said.get("content"):
            delta["content"] = self._heard(text)
        if calls := said.get("tool_calls"):
            delta["tool_calls"] = self._called(calls)
        return AnswerPart(delta) if delta else None

    def end(self) -> AnswerPart:
        """The last part; `LlmFailed` where the answer as a whole is none."""
        if self._finish is None:
            raise LlmFailed(FailureKind.RESET)  # no word of an end: it broke off
        message = {
            "content": "".join(self._texts),
            "tool_calls": [{"function": self._calls[index]["function"]} for index in sorted(self._calls)],
            "reasoning_content": self._thought,
            "refusal": self._refusal,
        }
        turn = turn_of({"choices": [{"message": message}], "usage": self._usage})
        return AnswerPart(finish=self._finish, input_tokens=turn.input_tokens, output_tokens=turn.output_tokens)

    def _heard(self, text: object) -> str:
        if not isinstance(text, str) or "\x00" in text or text != sendable(text):
            raise LlmFailed(FailureKind.MALFORMED)
        self._characters += len(text)
        if self._characters > MAX_CONTENT_CHARACTERS:
            raise LlmFailed(FailureKind.MALFORMED)
        self._texts.append(text)
        return text

    def _called(self, calls: object) -> list[JsonObject]:
        """The same deltas with the known fields alone."""
        if not isinstance(calls, list):
            raise LlmFailed(FailureKind.MALFORMED)
        return [self._call(call) for call in calls]

    def _call(self, call: object) -> JsonObject:
        known = call if isinstance(call, dict) else {}
        index, function = known.get("index", 0), known.get("function")
        if not isinstance(index, int) or not 0 <= index < MOST_CALLS or not isinstance(function, dict):
            raise LlmFailed(FailureKind.MALFORMED)
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if not all(isinstance(each, str) and each == sendable(each) for each in (name, arguments)):
            raise LlmFailed(FailureKind.MALFORMED)
        delta: JsonObject = {"index": index, "function": {"arguments": arguments}}
        begun = self._calls.get(index)
        if begun is None:
            begun = self._calls[index] = {"function": {"name": "", "arguments": ""}}
            delta |= {"id": str(known.get("id") or f"call_{index}")[:128], "type": "function"}
        if name:
            delta["function"]["name"] = name
        begun["function"]["name"] += name
        begun["function"]["arguments"] += arguments
        if len(begun["function"]["arguments"]) > MAX_OBJECT_CHARACTERS:
            raise LlmFailed(FailureKind.MALFORMED)
        return delta


async def bound_stream(response: httpx2.Response) -> None:
    """A hook of the HTTP client: of a stream of events never more than `MAX_STREAM_BYTES` are read."""
    is_stream = EVENTS in response.headers.get("content-type", "")
    if is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_STREAM_BYTES
        async for chunk in self._whole:
            left -= len(chunk)
            if left < 0:
                raise LlmFailed(FailureKind.TOO_LARGE)
            yield chunk

    async def aclose(self) -> None:
        await self._whole.aclose()


class _Events:
    """The events of an answer as plain objects."""

    def __init__(self, chunks: AsyncIterator[Any]) -> None:
        self._chunks = chunks

    async def following(self, progress: AttemptProgress) -> Mapping[str, Any] | None:
        """The next one, if there is one."""
        import openai

        progress.began = True
        try:
            chunk = await anext(self._chunks, None)
        except json.JSONDecodeError:
            raise LlmFailed(FailureKind.MALFORMED) from None
        except openai.APIError as error:
            if type(error) is openai.APIError:  # an error that the endpoint tells of in its stream
                raise LlmFailed(FailureKind.OVERLOADED) from None
            raise
        if chunk is None or isinstance(chunk, dict):
            return chunk
        to_dict = getattr(chunk, "to_dict", None)
        event = None if to_dict is None else to_dict(mode="python", exclude_unset=True, warnings=False)
        if not isinstance(event, dict):
            raise LlmFailed(FailureKind.MALFORMED)
        return event


async def _told_at_once(completion: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
    """A whole completion as the one event of a stream."""
    turn_of(completion)  # or `LlmFailed`
    [choice, *_] = completion["choices"]
    said = dict(choice["message"])
    calls = said.get("tool_calls") or ()
    said["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
    finish = choice.get("finish_reason") or STOP
    yield {"choices": [{"delta": said, "finish_reason": finish}], "usage": completion.get("usage")}


async def _in_time(step: Callable[[AttemptProgress], Awaitable[Result]], until: float) -> Result:
    """A step of the stream; `AgentFailed` names what went wrong."""
    try:
        return await attempt(step, max(until - time.monotonic(), 0.0), refusal_of=refusal_of, who=WHO)
    except LlmFailed as failed:
        failure = failed_by(failed)
    raise failure


def _or_failed(work: Callable[..., Result], *given: Any) -> Result:
    try:
        return work(*given)
    except LlmFailed as failed:
        failure = failed_by(failed)
    raise failure
