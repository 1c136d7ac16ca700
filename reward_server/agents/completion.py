"""Reads what an OpenAI-compatible endpoint answers: a completion as a turn, a failure as its cause in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from reward_server.errors import AgentFailed
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.transport import RefusedResponse, count, sendable
from trainer_client.wire import Message, ToolCall
from trainer_client.wire.base import REASONING_FIELDS

MAX_ANSWER_BYTES = 1_048_576
WHO = {"provider": "agent"}
"""Who it is, in operators' logs."""
STOP, TOOL_CALLS = "stop", "tool_calls"
FINISHES = (STOP, "length", TOOL_CALLS, "content_filter")
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
class EndpointTurn:
    """The turn of an agent behind an endpoint."""

    message: Message = field(repr=False)
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str = STOP
    """Why it ended, in OpenAI's words."""


def failed_by(failed: LlmFailed) -> AgentFailed:
    """The error for the lab, with the cause in words."""
    return AgentFailed.because(CAUSES.get(failed.kind, failed.kind.value))


def turn_of(completion: Mapping[str, Any]) -> EndpointTurn:
    """The message of a completion, as the contract has it; `LlmFailed` where it has none."""
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
    tokens = count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))
    finish = choice.get("finish_reason") if isinstance(choice, dict) else None
    return EndpointTurn(message, *tokens, finish if finish in FINISHES else STOP)


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


def refusal_of(error: Exception) -> RefusedResponse | None:
    """The refusal in an error of the SDK."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        return None
    # It is the lab that is told of it, so operators' logs need no hint.
    return RefusedResponse(status=error.status_code, headers=error.response.headers, told=True)
