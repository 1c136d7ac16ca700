"""The text of an answer, read strictly: exactly the shape that was asked for, or a typed failure.

A model without structured output may fence its JSON, put words around it or think aloud before it: the answer is then
the one object of the shape that was asked for. With two of them, or none, there is no answer: a conversation that is
judged may hold a verdict for the model to quote.

Nothing is coerced: `1` and `"true"` are no booleans, a missing or additional field is no answer, NaN is no number.
No failure quotes what was answered, and none has the parser's error as its context: that holds the answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from reward_server.llm.base import FailureKind, LlmFailed, TokenUsage

Schema = TypeVar("Schema", bound=BaseModel)

_OUT_OF_RANGE = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_KEPT = frozenset({"type", "description", "enum", "const", "$ref", "required", "additionalProperties"})
"""Keywords that every provider takes in a strict schema."""
_SAID_IN_WORDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
"""Limits that not every provider takes; they go into the description, and the answer is held to them here."""


_THINKS, _THOUGHT = "<think>", "</think>"
_MOST_TRIED = 64
"""Places at which an object may begin: an answer that is all braces shall not cost its square."""


class _NotFiniteError(ValueError):
    """NaN or an infinity in JSON, where the standard knows none."""


def parse_answer(text: str, schema: type[Schema], usage: TokenUsage | None = None) -> Schema:
    """The answer as an instance of the schema. `usage` is what it cost, good or not.

    Raises:
        LlmFailed: `empty`, `not_finite`, `out_of_range` (a limit of the schema alone is broken) or `malformed`.
    """
    parsed, failure = _parsed(text, schema)
    # Raised here, where no parser's error is being handled, so that none becomes the context.
    if parsed is None:
        raise LlmFailed(failure, usage=usage)
    return parsed


def _parsed(text: str, schema: type[Schema]) -> tuple[Schema | None, FailureKind]:
    if not text.strip():
        return None, FailureKind.EMPTY
    if _is_json(text):
        return _read(text, schema)
    found = [_read(piece, schema) for piece in _objects(_after_thinking(text))]
    answers = [each for each in found if each[0] is not None]
    if len(answers) == 1:
        return answers[0]
    return found[0] if len(found) == 1 else (None, FailureKind.MALFORMED)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _after_thinking(text: str) -> str:
    """The text after the thoughts of a reasoning model; nothing where they do not end."""
    _, closed, after = text.rpartition(_THOUGHT)
    if closed:
        return after
    return "" if _THINKS in text else text


def _objects(text: str) -> list[str]:
    """The outermost JSON objects in a text, in order."""
    decoder, pieces, place = json.JSONDecoder(), [], 0
    for _ in range(_MOST_TRIED):
        place = text.find("{", place)
        if place < 0:
            break
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        pieces.append(text[place:end])
        place = end
    return pieces


def _read(text: str, schema: type[Schema]) -> tuple[Schema | None, FailureKind]:
    """A text that is JSON from end to end."""
    try:
        json.loads(text, parse_constant=_constant, parse_float=_finite, object_pairs_hook=_without_doubles)
        parsed = schema.model_validate_json(text, strict=True, extra="forbid")
    except _NotFiniteError:
        return None, FailureKind.NOT_FINITE
    except ValidationError as error:
        kinds = {found["type"] for found in error.errors(include_input=False, include_context=False)}
        return None, FailureKind.OUT_OF_RANGE if kinds <= _OUT_OF_RANGE else FailureKind.MALFORMED
    except (ValueError, RecursionError):
        return None, FailureKind.MALFORMED
    return (parsed if _is_complete(parsed) else None), FailureKind.MALFORMED


def _constant(word: str) -> float:
    raise _NotFiniteError(word)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NotFiniteError("overflow")
    return number


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is used twice")
    return members


def _is_complete(value: Any) -> bool:
    """True if every field was answered: a default of ours would be an answer that nobody gave."""
    if isinstance(value, BaseModel):
        given = value.model_fields_set >= type(value).model_fields.keys()
        return given and all(_is_complete(getattr(value, name)) for name in type(value).model_fields)
    return all(map(_is_complete, value)) if isinstance(value, (list, tuple)) else True


@cache
def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an answer in the subset that providers take as strict.

    Every field is required, no other is allowed; limits are said in words.

    Raises:
        TypeError: the shape has something that no strict schema can say, such as a mapping with free names.
    """
    return _strict(schema.model_json_schema())


def _strict(node: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(node.get("additionalProperties"), dict) or "prefixItems" in node:
        raise TypeError("mappings with free names and tuples of fixed length have no strict schema")
    strict = {name: value for name, value in node.items() if name in _KEPT}
    words = [said.format(node[name]) for name, said in _SAID_IN_WORDS.items() if name in node]
    if words:
        strict["description"] = " ".join([*filter(None, [strict.get("description")]), f"({', '.join(words)})"])
    if node.get("type") == "object":
        properties = node.get("properties", {})
        strict["properties"] = {name: _strict(inner) for name, inner in properties.items()}
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    if "items" in node:
        strict["items"] = _strict(node["items"])
    if "$defs" in node:
        strict["$defs"] = {name: _strict(inner) for name, inner in node["$defs"].items()}
    choices: Iterable[Mapping[str, Any]] = node.get("anyOf") or node.get("oneOf") or node.get("allOf") or ()
    if choices:
        strict["anyOf"] = [_strict(inner) for inner in choices]
    return strict
