"""The System One protocol (`POST /v1/systemone`), asked once per call: any server of it, hosted or one's own.

Nobody's client is needed: the protocol is a page. The response's size is limited while it arrives; each answer is read
strictly, alone, so that one that is wrong costs no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

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
from reward_server.llm.transport import (
    MAX_BODY_BYTES_WITH_LOGPROBS,
    AttemptProgress,
    RefusedResponse,
    attempt,
    bound_error_body,
    count,
    public_url,
    read_json,
    timeout_of,
)

ROUTE = "/v1/systemone"
MOST_QUESTIONS = 200
"""In one request: no server is known to take fewer, and one that does says so."""


class SystemOneProvider:
    """One model behind one URL."""

    name = "systemone"
    most_questions = MOST_QUESTIONS
    most_options = MOST_OPTIONS

    def __init__(self, model: str, api_key: str | None, *, base_url: str) -> None:
        self.model = model
        self._url = _route(base_url)
        self.endpoint = public_url(self._url)
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            event_hooks={"response": [bound_error_body]},
            follow_redirects=False,
            trust_env=False,
        )

    def __repr__(self) -> str:
        return f"<SystemOneProvider {self.model}>"

    async def complete(self, question: Request, timeout_s: float) -> DecisionReply:
        """One attempt; raises `LlmFailed`."""

        async def send(progress: AttemptProgress) -> DecisionReply:
            return await self._send(question, timeout_s, progress)

        return await attempt(send, timeout_s, refusal_of=_refusal, who={"provider": self.name, "model": self.model})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(self, request: Request, timeout_s: float, progress: AttemptProgress) -> DecisionReply:
        body = {
            "model": self.model,
            "state": request.state,
            "questions": {name: wire(each) for name, each in request.questions.items()},
        }
        async with self._client.stream("POST", self._url, json=body, timeout=timeout_of(timeout_s)) as response:
            progress.began = True
            if response.status_code != httpx2.codes.OK:
                raise _StatusError(response)
            document = await read_json(response.headers, response.aiter_bytes(), MAX_BODY_BYTES_WITH_LOGPROBS)
        return _reply(document, request, self.model)


class _StatusError(Exception):
    """A response with another status than 200; carries no content."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.response = response


def _refusal(error: Exception) -> RefusedResponse | None:
    if not isinstance(error, _StatusError):
        return None
    return RefusedResponse(status=error.response.status_code, headers=error.response.headers)


def _route(base_url: str) -> str:
    """The address of the route: given whole, or as that of the server, with or without its /v1."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    if not path.endswith("/systemone"):
        path = f"{path}/systemone" if path.endswith("/v1") else f"{path}{ROUTE}"
    return parts._replace(path=path).geturl()


def wire(question: Typed) -> dict[str, Any]:
    """The question as the protocol has it."""
    match question:
        case YesNoQuestion(asks, yes, no):
            meant = {label: text for label, text in (("true", yes), ("false", no)) if text is not None}
            return {"type": "noul", "instructions": asks, **({"criteria": meant} if meant else {})}
        case ChoiceQuestion(asks, options):
            return {"type": "choice", "instructions": asks, "criteria": dict(options)}
    return {"type": "score", "instructions": question.asks, "criteria": list(question.levels)}


def _reply(document: Mapping[str, Any], request: Request, model: str) -> DecisionReply:
    usage, answers, named = document.get("usage"), document.get("answers"), document.get("model")
    counts = usage if isinstance(usage, dict) else {}
    used = TokenUsage(count(counts.get("input_tokens")), count(counts.get("output_tokens")))
    if not isinstance(answers, dict):
        raise LlmFailed(FailureKind.MALFORMED, usage=used)
    outcomes = {name: _read(each, answers[name]) for name, each in request.questions.items() if name in answers}
    return DecisionReply(outcomes, named if isinstance(named, str) else model, used)


def _read(question: Typed, answer: object) -> Outcome:
    if not isinstance(answer, dict):
        return Undecided(FailureKind.MALFORMED)
    said = answer.get("type")
    if said == "refusal":
        return Undecided(FailureKind.REFUSED)
    if said == "unsupported":
        return Undecided(FailureKind.REJECTED)
    if said != wire(question)["type"]:
        return Undecided(FailureKind.WRONG_TYPE)
    if isinstance(question, YesNoQuestion):
        return probability(question, answer.get("noul"))
    given = answer.get("probabilities")
    if isinstance(given, list):
        given = {str(level): value for level, value in enumerate(given)}
    return distribution(question, given) if isinstance(given, dict) else Undecided(FailureKind.MALFORMED)
