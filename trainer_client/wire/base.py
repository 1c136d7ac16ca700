"""What all wire types share: limits, bases of requests and responses, plain JSON objects, messages.

Requests forbid unknown fields, responses ignore them; a message ignores the keys of other chat formats.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, StringConstraints, model_validator

MAX_CONTENT_CHARACTERS = 10_000
MAX_OBJECT_CHARACTERS = 20_000
"""Of a tool call's input: characters of its keys and texts, and one for each value."""
MAX_BATCH_ITEMS = 100
MAX_GROUP_MEMBERS = 64
MAX_TURNS = 50
MAX_NORMALIZATION_WINDOWS = 5
MAX_COMPOSITE_PARTS = 8
MOST_UNKNOWN_FIELDS = 20

SlugField = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Reward = Annotated[float, Field(ge=0.0, le=1.0)]
Role = Literal["assistant", "user"]
TerminalReason = Literal["completed", "max_turns_reached", "client_terminated", "error"]
WindowSpec = Annotated[str, StringConstraints(pattern=r"^\d+[dwmn]$", max_length=256)]


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what other JSON readers choke on, infinities, NaN and integers beyond 64 bits, and what is too much."""
    pending: list[object] = [value]
    size = 0
    while pending:
        item = pending.pop()
        size += 1
        if isinstance(item, dict):
            size += sum(map(len, item))
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
        elif isinstance(item, str):
            size += len(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("numbers must be finite")
        elif isinstance(item, int) and not -(2**63) <= item < 2**63:
            raise ValueError("integers must fit in 64 bits")
        if size > MAX_OBJECT_CHARACTERS:
            raise ValueError("the object is too large")
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_plain)]


class RequestModel(BaseModel):
    """Base of what a client sends: unknown fields are an error, of which the first few are told."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown_fields(cls, value: object) -> object:
        """A million unknown fields would make a million errors before anybody could count them."""
        known = cls.model_fields
        if not isinstance(value, dict) or len(value) <= len(known) + MOST_UNKNOWN_FIELDS:
            return value
        unknown = islice((name for name in value if name not in known), MOST_UNKNOWN_FIELDS)
        return {name: value[name] for name in (*(name for name in known if name in value), *unknown)}


class ResponseModel(BaseModel):
    """Base of what the server sends: unknown fields are ignored by the client."""

    model_config = ConfigDict(extra="ignore")


class ToolCall(BaseModel):
    """A tool call attached to the agent message that makes it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    type: Literal["artifact", "decision"] | None = None
    input: JsonObject


class Message(BaseModel):
    """One message. Keys of other chat formats (`name`, `tool_call_id`, …) are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    role: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)]
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None


Messages = Annotated[list[Message], FailFast()]
"""A conversation; what is wrong is told of the first message that has something wrong."""


class Observation(ResponseModel):
    """What the persona said."""

    role: Role
    content: str
