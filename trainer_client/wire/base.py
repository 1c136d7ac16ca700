"""Parts that all wire types share: limits, bases of requests and responses, plain JSON objects, messages.

Requests forbid unknown fields, responses ignore them; a message ignores the keys of other chat formats.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import from_json

from trainer_client.wire.normalised import MAX_NORMALISED_CHARACTERS, normalised_length

MAX_CONTENT_CHARACTERS = 10_000
MAX_OBJECT_CHARACTERS = 20_000
"""Of a tool call's input: characters of its keys and texts as they are read (NFKC), and one for each value."""
MAX_RUBRIC_CHARACTERS = 60_000
"""Of a rubric that comes with a request, counted in the same way."""
MAX_BATCH_ITEMS = 100
MAX_GROUP_MEMBERS = 64
MAX_TURNS = 50
MAX_NORMALIZATION_WINDOWS = 5
MAX_COMPOSITE_PARTS = 8
MOST_UNKNOWN_FIELDS = 20
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_REASONING_PARTS = frozenset({"reasoning", "reasoning_text", "thinking", "redacted_thinking"})
"""Where other APIs keep what a model thinks, which nobody hears."""
UNREADABLE = "arguments"
"""Where the input of a call is kept that is not the object it should be; it fits no tool then."""

SlugField = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Reward = Annotated[float, Field(ge=0.0, le=1.0)]
Role = Literal["assistant", "user"]
TerminalReason = Literal["completed", "max_turns_reached", "client_terminated", "error"]
WindowSpec = Annotated[str, StringConstraints(pattern=r"^\d+[dwmn]$", max_length=256)]


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return _plain_within(value, MAX_OBJECT_CHARACTERS)


def _plain_rubric(value: dict[str, Any]) -> dict[str, Any]:
    return _plain_within(value, MAX_RUBRIC_CHARACTERS)


def _plain_within(value: dict[str, Any], most: int) -> dict[str, Any]:
    """Refuse what other JSON readers choke on, infinities, NaN and integers beyond 64 bits, and what is too much."""
    pending: list[object] = [value]
    size = 0
    while pending:
        item = pending.pop()
        size += 1
        if isinstance(item, dict):
            size += sum(map(normalised_length, item))
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
        elif isinstance(item, str):
            size += normalised_length(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("numbers must be finite")
        elif isinstance(item, int) and not -(2**63) <= item < 2**63:
            raise ValueError("integers must fit in 64 bits")
        if size > most:
            raise ValueError("the object is too large")
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_plain)]
RubricObject = Annotated[dict[str, Any], AfterValidator(_plain_rubric)]
"""A rubric without a persona, as `labs.rubric/1` files hold it."""


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


GIVEN_RUBRIC = {"collection_slug": "rubric", "scenario_slug": "given"}
"""What stands for the scenario in a request that brings its own rubric."""


class JudgedRequest(RequestModel):
    """Base of requests to score conversations, by a scenario or by a `rubric` of the request's own.

    The one takes the place of the other; a rubric needs a key of the scope `author`.
    """

    model_config = ConfigDict(
        json_schema_extra=lambda schema: schema.update(
            required=[name for name in schema.get("required", ()) if name not in GIVEN_RUBRIC]
        )
    )

    collection_slug: SlugField
    scenario_slug: SlugField
    rubric: RubricObject | None = None
    """Instead of `collection_slug` and `scenario_slug`: a rubric without a persona (docs/rubrics.md)."""

    @model_validator(mode="before")
    @classmethod
    def _rubric_or_scenario(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("rubric") is None:
            return value
        if any(value.get(name) not in (None, given) for name, given in GIVEN_RUBRIC.items()):
            raise ValueError("send either `rubric` or `collection_slug` and `scenario_slug`")
        return {**value, **GIVEN_RUBRIC}


class ResponseModel(BaseModel):
    """Base of what the server sends: unknown fields are ignored by the client."""

    model_config = ConfigDict(extra="ignore")


class ToolCall(BaseModel):
    """A tool call attached to the agent message that makes it. OpenAI's shape is taken, too, and read as ours."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    type: Literal["artifact", "decision"] | None = None
    input: JsonObject

    @model_validator(mode="before")
    @classmethod
    def _from_function(cls, value: object) -> object:
        """`{"id", "type": "function", "function": {"name", "arguments"}}`."""
        if not isinstance(value, dict) or not isinstance(value.get("function"), dict):
            return value
        function = value["function"]
        return {"name": function.get("name"), "input": _arguments(function.get("arguments"))}


def _arguments(given: object) -> object:
    """An object, or its JSON text. What is no object is kept under a name: a mistake, but none of the request."""
    if given is None or given == "":
        return {}
    if not isinstance(given, str):
        return given if isinstance(given, dict) else {UNREADABLE: given}
    if len(given) > MAX_OBJECT_CHARACTERS:
        raise ValueError("the arguments are too long")
    if "\\u0000" in given:
        raise ValueError("text must not contain NUL characters")
    try:
        read = from_json(given, allow_inf_nan=False)
    except ValueError:
        return {UNREADABLE: given}
    return read if isinstance(read, dict) else {UNREADABLE: read}


class Message(BaseModel):
    """One message. Other keys of chat formats (`name`, `tool_call_id`, …) are ignored.

    `content` may be null or left out beside tool calls or reasoning, and a list of text parts, which are joined by line
    breaks; parts and fields of reasoning are left out. `function_call` and the role `function` are read as well.
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    role: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)]
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """The content as one text, without reasoning; what is no text stays what it is, and is an error."""
        if not isinstance(value, dict):
            return value
        if value.get("function_call") or value.get("role") == "function":
            value = _newer(value)
        if isinstance(value.get("content"), str):
            return value
        content = value.get("content")
        if content is None:
            has_more = value.get("tool_calls") or any(value.get(name) for name in REASONING_FIELDS)
            return {**value, "content": "" if has_more else None}
        text = text_of_parts(content)
        return value if text is None else {**value, "content": text}

    @field_validator("content", mode="before")
    @classmethod
    def _told_of_the_field(cls, value: object) -> object:
        """Word an error of `_as_text` for this field."""
        if value is None:
            limit = f"text of at most {MAX_CONTENT_CHARACTERS:,} characters"
            raise ValueError(f"is required: {limit}; only a message with `tool_calls` may leave it out")
        if isinstance(value, list):
            raise ValueError("must be text, or a list of text parts and nothing else")  # noqa: TRY004 (pydantic's own)
        return value

    @field_validator("content")
    @classmethod
    def _short_also_as_it_is_read(cls, content: str) -> str:
        """Refuse text that NFKC makes as costly as text that is sent so long."""
        if (length := normalised_length(content)) > MAX_NORMALISED_CHARACTERS:
            limit = f"at most {MAX_NORMALISED_CHARACTERS:,} characters in Unicode's form NFKC"
            raise ValueError(f"must have {limit}, this has {length:,}: use fewer ligatures and signs, or less text")
        return content


def _newer(value: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's older form of a tool call and of its result, in the newer one."""
    role = "tool" if value.get("role") == "function" else value.get("role")
    call = value.get("function_call")
    if not call or value.get("tool_calls"):
        return {**value, "role": role}
    return {**value, "role": role, "tool_calls": [{"function": call}]}


def text_of_parts(content: object) -> str | None:
    """The text of a list of parts, without reasoning; None of what is no such list."""
    if not isinstance(content, list) or not content:
        return None
    spoken = [part for part in content if not _is_reasoning_part(part)]
    return "\n".join(part["text"] for part in spoken) if all(map(_is_text_part, spoken)) else None


def _is_reasoning_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _REASONING_PARTS


def _is_text_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


Messages = Annotated[list[Message], FailFast()]
"""A conversation; what is wrong is told of the first message that has something wrong."""


class Observation(ResponseModel):
    """The persona's words."""

    role: Role
    content: str
