"""OpenAI's chat completions, and everything that speaks them (vLLM and others), asked once per call through the SDK.

The request is the SDK's; the body of the response is read here, so that its size is limited while it arrives and the
answer is parsed strictly. Settings that a model refuses (some take no temperature) are left out from then on, and the
failed attempt says that it may be made again at once. Not so log-probabilities: verdicts that are weighed by them are
others than those that are not, so it is for the operator to say that a model has none, and until then a failure.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import openai

from reward_server.llm.answers import parse_answer, strict_schema
from reward_server.llm.base import NO_LOGPROBS_HINT, Answer, FailureKind, LlmFailed, Question, TokenChoice, TokenUsage
from reward_server.llm.openai_client import DEFAULT_URL, openai_client
from reward_server.llm.transport import (
    MAX_BODY_BYTES,
    MAX_BODY_BYTES_WITH_LOGPROBS,
    AttemptProgress,
    RefusedResponse,
    attempt,
    count,
    public_url,
    read_json,
    refusal_of_openai,
    sendable,
    timeout_of,
)
from reward_server.logs.logger import get_logger

ALTERNATIVES = 20
"""Tokens with log-probabilities at each position; more than this neither OpenAI nor vLLM gives."""

_OPTIONAL = frozenset({"temperature", "seed", "prompt_cache_key"})
"""What a model may refuse, and what is left out then."""
_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
_NAMED = re.compile(r"\b(?:top_)?logprobs\b", re.IGNORECASE)

log = get_logger(__name__)


class OpenAIProvider:
    """One model behind one URL. `vllm` stands for any server that is not OpenAI's own."""

    def __init__(
        self,
        model: str,
        api_key: str,
        *,
        base_url: str | None = None,
        name: Literal["openai", "vllm"] = "openai",
        has_logprobs: bool = True,
    ) -> None:
        self._client = openai_client(api_key, base_url)
        self._left_out: frozenset[str] = frozenset()
        self.name = name
        self.model = model
        self.has_logprobs = has_logprobs
        self.endpoint = public_url(base_url or DEFAULT_URL)

    def __repr__(self) -> str:
        return f"<OpenAIProvider {self.name} {self.model}>"

    async def complete(self, question: Question, timeout_s: float) -> Answer:
        """One attempt; raises `LlmFailed`, with `retry_after_s` 0 where leaving out a setting may help."""

        async def send(progress: AttemptProgress) -> Answer:
            return await self._send(question, timeout_s, progress)

        sent = self._options(question)
        refused: set[str] = set()

        def refusal_of(error: Exception) -> RefusedResponse | None:
            if isinstance(error, openai.BadRequestError):
                refused.update(sent.keys() & {str(error.param)})
            if question.logprobs and not refused and _speaks_of_logprobs(error):
                refused.add("logprobs")
            return refusal_of_openai(error, told=bool(refused & (_OPTIONAL | _LOGPROBS)))

        who = {"provider": self.name, "model": self.model}
        try:
            answer = await attempt(send, timeout_s, refusal_of=refusal_of, who=who)
        except LlmFailed as failed:
            if not refused & (_OPTIONAL | _LOGPROBS):
                raise
            usage = failed.usage
        else:
            if answer.tokens or not question.logprobs:
                return answer
            refused, usage = {"logprobs"}, answer.usage
        if refused & _LOGPROBS:
            log.error("llm_gives_no_logprobs", hint=NO_LOGPROBS_HINT, **who)
            raise LlmFailed(FailureKind.NO_LOGPROBS, usage=usage)
        self._left_out |= refused
        log.warning("llm_setting_left_out", setting=min(refused), **who)
        raise LlmFailed(FailureKind.REJECTED, retry_after_s=0.0, usage=usage)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, question: Question, timeout_s: float, progress: AttemptProgress) -> Answer:
        instructions = [{"role": "system", "content": sendable(question.system)}] if question.system else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*instructions, {"role": "user", "content": sendable(question.user)}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": re.sub(r"[^A-Za-z0-9_-]", "_", question.schema.__name__)[:64],
                    "schema": strict_schema(question.schema),
                    "strict": True,
                },
            },
            **self._options(question),
        }
        limit = MAX_BODY_BYTES_WITH_LOGPROBS if question.logprobs else MAX_BODY_BYTES
        async with self._client.chat.completions.with_streaming_response.create(
            **body, timeout=timeout_of(timeout_s)
        ) as response:
            progress.began = True
            completion = await read_json(response.headers, response.iter_bytes(), limit)
        return _answer(completion, question, self.model)

    def _options(self, question: Question) -> dict[str, Any]:
        """The settings of this question that are sent."""
        wanted: dict[str, Any] = {
            # OpenAI's newer models refuse the old name; other servers may not know the new one.
            "max_completion_tokens" if self.name == "openai" else "max_tokens": question.max_tokens,
            "temperature": question.temperature,
            "seed": question.seed,
            "logprobs": True if question.logprobs else None,
            "top_logprobs": ALTERNATIVES if question.logprobs else None,
        }
        if self.name == "openai" and question.system:
            wanted["prompt_cache_key"] = hashlib.sha256(sendable(question.system).encode()).hexdigest()[:32]
        return {name: value for name, value in wanted.items() if value is not None and name not in self._left_out}


def _answer(completion: Mapping[str, Any], question: Question, model: str) -> Answer:
    usage = _usage(completion.get("usage"))
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise LlmFailed(FailureKind.MALFORMED if choices else FailureKind.EMPTY, usage=usage)
    failed = _stopped(choice.get("finish_reason"), message)
    if failed is not None:
        raise LlmFailed(failed, usage=usage)
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    parsed = parse_answer(text, question.schema, usage)
    named = completion.get("model")
    return Answer(
        parsed=parsed,
        text=text,
        model=named if isinstance(named, str) else model,
        usage=usage,
        tokens=_tokens(choice.get("logprobs")),
    )


def _stopped(reason: object, message: Mapping[str, Any]) -> FailureKind | None:
    """The reason why there is no whole answer, if there is none."""
    if message.get("refusal") or reason == "content_filter":
        return FailureKind.REFUSED
    if reason == "length":
        return FailureKind.TRUNCATED
    return None if reason == "stop" else FailureKind.MALFORMED


def _usage(usage: object) -> TokenUsage:
    counts = usage if isinstance(usage, dict) else {}
    details = counts.get("prompt_tokens_details")
    return TokenUsage(
        input_tokens=count(counts.get("prompt_tokens")),
        output_tokens=count(counts.get("completion_tokens")),
        cached_tokens=count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )


def _tokens(logprobs: object) -> tuple[TokenChoice, ...]:
    """The answer's tokens with their alternatives; what is not a finite log-probability is left out."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    found = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    return tuple(_token(entry) for entry in found if isinstance(entry.get("token"), str))


def _token(entry: Mapping[str, Any]) -> TokenChoice:
    others = entry.get("top_logprobs")
    alternatives = {}
    for other in [*(others if isinstance(others, list) else []), entry]:
        token, logprob = (other.get("token"), other.get("logprob")) if isinstance(other, dict) else (None, None)
        # Above zero would be a probability above one; some servers round that way, but no more than a little.
        if isinstance(token, str) and isinstance(logprob, (int, float)) and math.isfinite(logprob) and logprob < 1e-3:
            alternatives[token] = min(float(logprob), 0.0)
    return TokenChoice(token=entry["token"], alternatives=alternatives)


def _speaks_of_logprobs(error: Exception) -> bool:
    """True if a refusal names log-probabilities; few servers say in a field of its own what they refuse.

    Not so a 429, which says nothing of what the model can do.
    """
    if not isinstance(error, openai.APIStatusError) or error.status_code == 429 or error.status_code >= 500:
        return False
    return any(_NAMED.search(text) for text in _said(error.body))


def _said(body: object) -> Iterator[str]:
    """The words of an error body, and none that it quotes: FastAPI's 422 sends the whole request back as `input`."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, list):
        for entry in body:
            yield from _said(entry)
    elif isinstance(body, dict):
        for name in ("message", "detail", "msg", "loc"):
            yield from _said(body.get(name))
