"""OpenAI's decisions (`POST /v1/decisions`), asked once per call through its SDK.

The request is the SDK's; the body of the response is read here, as in the adapter of its chat models. Questions are
matched by their names, not by their order: an answer in the place of another would be one to a question nobody asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from reward_server.decisions.questions import (
    MOST_OPTIONS,
    ChoiceQuestion,
    DecisionReply,
    Outcome,
    Request,
    Typed,
    Undecided,
    YesNoQuestion,
)
from reward_server.decisions.reading import distribution, probability
from reward_server.llm.base import FailureKind, LlmFailed, TokenUsage
from reward_server.llm.openai_client import DEFAULT_URL, openai_client
from reward_server.llm.transport import (
    MAX_BODY_BYTES_WITH_LOGPROBS,
    AttemptProgress,
    attempt,
    count,
    public_url,
    read_json,
    refusal_of_openai,
    sendable,
    timeout_of,
)

MOST_QUESTIONS = 400


class OpenAIDecisions:
    """One model behind one URL."""

    name = "openai"
    most_questions = MOST_QUESTIONS
    most_options = MOST_OPTIONS

    def __init__(self, model: str, api_key: str, *, base_url: str | None = None) -> None:
        self._client = openai_client(api_key, base_url)
        self.model = model
        self.endpoint = public_url(base_url or DEFAULT_URL)

    def __repr__(self) -> str:
        return f"<OpenAIDecisions {self.model}>"

    async def complete(self, question: Request, timeout_s: float) -> DecisionReply:
        """One attempt; raises `LlmFailed`."""

        async def send(progress: AttemptProgress) -> DecisionReply:
            return await self._send(question, timeout_s, progress)

        who = {"provider": self.name, "model": self.model}
        return await attempt(send, timeout_s, refusal_of=refusal_of_openai, who=who)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, request: Request, timeout_s: float, progress: AttemptProgress) -> DecisionReply:
        state = sendable(request.state_text)
        body: dict[str, Any] = {
            "model": self.model,
            "input": state,
            "questions": [_wire(name, each) for name, each in request.questions.items()],
            "prompt_cache_key": hashlib.sha256(state[: len(state) // 2].encode()).hexdigest()[:32],
        }
        async with self._client.decisions.with_streaming_response.create(
            **body, timeout=timeout_of(timeout_s)
        ) as response:
            progress.began = True
            document = await read_json(response.headers, response.iter_bytes(), MAX_BODY_BYTES_WITH_LOGPROBS)
        return _reply(document, request, self.model)


def _wire(name: str, question: Typed) -> dict[str, Any]:
    if isinstance(question, YesNoQuestion):
        meant = [f"{word}: {text}" for word, text in (("True", question.yes), ("False", question.no)) if text]
        return {"name": name, "type": "predicate", "instructions": sendable("\n".join([question.asks, *meant]))}
    if isinstance(question, ChoiceQuestion):
        choices = [
            {"value": label, **({} if text is None else {"description": sendable(text)})}
            for label, text in question.options
        ]
        return {"name": name, "type": "choice", "instructions": sendable(question.asks), "choices": choices}
    levels = [{"label": str(level), "description": sendable(text)} for level, text in enumerate(question.levels)]
    return {"name": name, "type": "score", "instructions": sendable(question.asks), "levels": levels}


def _reply(document: Mapping[str, Any], request: Request, model: str) -> DecisionReply:
    usage, answers, named = document.get("usage"), document.get("answers"), document.get("model")
    used = _usage(usage if isinstance(usage, dict) else {})
    if not isinstance(answers, list):
        raise LlmFailed(FailureKind.MALFORMED, usage=used)
    given = [each for each in answers if isinstance(each, dict) and each.get("name") in request.questions]
    by_name = {each["name"]: each for each in given}
    if len(by_name) < len(given):
        raise LlmFailed(FailureKind.WRONG_IDS, usage=used)
    outcomes = {name: _read(request.questions[name], answer) for name, answer in by_name.items()}
    return DecisionReply(outcomes, named if isinstance(named, str) else model, used)


def _read(question: Typed, answer: Mapping[str, Any]) -> Outcome:
    said = answer.get("type")
    if said == "refusal":
        return Undecided(FailureKind.REFUSED)
    if said != _wire("", question)["type"]:
        return Undecided(FailureKind.WRONG_TYPE)
    if isinstance(question, YesNoQuestion):
        return probability(question, answer.get("probability"))
    rows = answer.get("probabilities")
    if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        return Undecided(FailureKind.MALFORMED)
    key = "value" if isinstance(question, ChoiceQuestion) else "label"
    given = {row.get(key): row.get("probability") for row in rows}
    if len(given) < len(rows) or not all(isinstance(label, str) for label in given):
        return Undecided(FailureKind.UNKNOWN_LABEL)
    return distribution(question, {str(label): value for label, value in given.items()})


def _usage(counts: Mapping[str, Any]) -> TokenUsage:
    details = counts.get("input_tokens_details")
    return TokenUsage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )
