"""An agent's answer in OpenAI's shapes: a chat completion, and the chunks of a stream."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reward_server.agents.completion import EndpointTurn
from reward_server.agents.streaming import AnswerPart
from reward_server.errors import LabsError, in_a_line
from reward_server.store.records import JsonObject


@dataclass(frozen=True)
class CompletionHead:
    """The part that a completion and all chunks of a stream have in common."""

    request_id: str
    created: int
    model: str

    def of(self, kind: str) -> JsonObject:
        """The fields, for a `chat.completion` or one of its chunks."""
        return {"id": f"chatcmpl-{self.request_id}", "object": kind, "created": self.created, "model": self.model}


def completion(head: CompletionHead, turn: EndpointTurn) -> JsonObject:
    """The whole answer."""
    message: JsonObject = {"role": "assistant", "content": turn.message.content}
    if turn.message.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
            }
            for index, call in enumerate(turn.message.tool_calls)
        ]
    return {
        **head.of("chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": turn.finish}],
        "usage": _usage(turn.input_tokens, turn.output_tokens),
    }


def chunks(head: CompletionHead, part: AnswerPart, *, is_first: bool, with_usage: bool) -> list[JsonObject]:
    """The chunks of a part; the usage is in one of its own, behind the end."""
    delta = {"role": "assistant", **part.delta} if is_first else part.delta
    shared = head.of("chat.completion.chunk")
    chunk = {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": part.finish}]}
    if not with_usage:
        return [chunk]
    chunk["usage"] = None
    used = _usage(part.input_tokens, part.output_tokens)
    return [chunk] if part.finish is None else [chunk, {**shared, "choices": [], "usage": used}]


def error_event(error: LabsError) -> JsonObject:
    """What a stream says instead of its end; OpenAI's SDKs raise it."""
    return {"error": {"message": in_a_line(error), "type": error.code, "code": error.code, "param": None}}


def _usage(prompt: int, spoken: int) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": spoken, "total_tokens": prompt + spoken}
