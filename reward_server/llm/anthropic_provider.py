"""Anthropic's Messages API, asked once per call through its SDK.

The request is the SDK's; the body of the response is read here, so that its size is limited while it arrives and the
answer is parsed strictly. The API takes neither temperature nor seed and gives no log-probabilities: a question's
wishes for them are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anthropic
from anthropic.types import TextBlockParam

from reward_server.llm.answers import parse_answer, strict_schema
from reward_server.llm.base import Answer, FailureKind, LlmFailed, Question, TokenUsage
from reward_server.llm.transport import (
    MAX_BODY_BYTES,
    AttemptProgress,
    RefusedResponse,
    attempt,
    bound_error_body,
    count,
    public_url,
    read_json,
    sendable,
    silence,
    timeout_of,
    word_of,
)

DEFAULT_URL = "https://api.anthropic.com"

_FINISHED = frozenset({"end_turn", "stop_sequence"})
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


class AnthropicProvider:
    """One model of Anthropic."""

    name = "anthropic"
    has_logprobs = False

    def __init__(self, model: str, api_key: str, *, base_url: str | None = None) -> None:
        silence("anthropic")
        # Base URL and tracing are given so that no variable of the environment decides where transcripts go.
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url or DEFAULT_URL,
            max_retries=0,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(
                event_hooks={"response": [bound_error_body]}, follow_redirects=False
            ),
        )
        self.model = model
        self.endpoint = public_url(base_url or DEFAULT_URL)

    def __repr__(self) -> str:
        return f"<AnthropicProvider {self.model}>"

    async def complete(self, question: Question, timeout_s: float) -> Answer:
        """One attempt; raises `LlmFailed`."""

        async def send(progress: AttemptProgress) -> Answer:
            return await self._send(question, timeout_s, progress)

        who = {"provider": self.name, "model": self.model}
        return await attempt(send, timeout_s, refusal_of=_refusal, who=who)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, question: Question, timeout_s: float, progress: AttemptProgress) -> Answer:
        cached: TextBlockParam = {
            "type": "text",
            "text": sendable(question.system),
            "cache_control": {"type": "ephemeral"},
        }
        async with self._client.messages.with_streaming_response.create(
            model=self.model,
            max_tokens=question.max_tokens,
            # An empty block is an error; without instructions there is nothing to cache either.
            system=[cached] if question.system else anthropic.omit,
            messages=[{"role": "user", "content": sendable(question.user)}],
            output_config={"format": {"type": "json_schema", "schema": strict_schema(question.schema)}},
            timeout=timeout_of(timeout_s),
        ) as response:
            progress.began = True
            message = await read_json(response.headers, response.iter_bytes(), MAX_BODY_BYTES)
        return _answer(message, question, self.model)


def _answer(message: Mapping[str, Any], question: Question, model: str) -> Answer:
    usage = _usage(message.get("usage"))
    stop = message.get("stop_reason")
    failed = {"refusal": FailureKind.REFUSED, **dict.fromkeys(_CUT, FailureKind.TRUNCATED)}.get(str(stop))
    if failed is None and stop not in _FINISHED:
        failed = FailureKind.MALFORMED
    if failed is not None:
        raise LlmFailed(failed, usage=usage)
    text = _text(message.get("content"))
    parsed = parse_answer(text, question.schema, usage)
    named = message.get("model")
    return Answer(parsed=parsed, text=text, model=named if isinstance(named, str) else model, usage=usage)


def _text(content: object) -> str:
    """The text of all text blocks; what the model thought before stands in blocks of another type."""
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _usage(usage: object) -> TokenUsage:
    counts = usage if isinstance(usage, dict) else {}
    read = count(counts.get("cache_read_input_tokens"))
    written = count(counts.get("cache_creation_input_tokens"))
    return TokenUsage(
        input_tokens=count(counts.get("input_tokens")) + read + written,
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=read,
    )


def _refusal(error: Exception) -> RefusedResponse | None:
    if not isinstance(error, anthropic.APIStatusError):
        return None
    return RefusedResponse(
        status=error.status_code,
        headers=error.response.headers,
        code=word_of(error.error_code or error.type),
        too_long=error.status_code == 400 and str(error.api_message).startswith("prompt is too long"),
    )
