"""A form for a tool, made of its JSON schema, and the input that such a form brings.

What a schema says that a form has no field for is entered as JSON. Only that nothing is missing is checked here, before
a turn is spent: whether an input fits is told by the server when the turn is played, as to any other agent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from reward_server.console.forms import Form
from reward_server.errors import FieldProblem, InvalidRequest

Json = dict[str, Any]
LONG_TEXT = 80
"""Characters: a field for longer text has several lines."""


class ToolForm(Protocol):
    """The public part of a tool."""

    @property
    def id(self) -> str:
        """By which it is called."""

    @property
    def input_schema(self) -> Json:
        """The JSON schema of a call's input."""


class FieldKind(StrEnum):
    """The kind of input of a field."""

    CHOICE = "choice"
    LINE = "line"
    TEXT = "text"
    NUMBER = "number"
    WHOLE = "whole"
    YES = "yes"
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a tool's form."""

    name: str
    kind: FieldKind
    is_required: bool
    description: str = ""
    options: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    length: int | None = None


def fields_of(tool: ToolForm) -> list[Field]:
    """The fields of a tool's input."""
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    return [_field(name, part, name in required) for name, part in schema.get("properties", {}).items()]


def input_of(tool: ToolForm, form: Form) -> Json:
    """The input that was entered for a tool; fields that were left empty are left out.

    Raises:
        InvalidRequest: something is missing, a number is none, or what should be JSON is none.
    """
    entered = [(field, form.text(f"{tool.id}.{field.name}")) for field in fields_of(tool)]
    missing = [field.name for field, text in entered if field.is_required and not text.strip()]
    if missing:
        raise InvalidRequest(errors=[FieldProblem((name,), "The tool needs this.") for name in missing])
    return {field.name: _value(field, text) for field, text in entered if text.strip() or field.kind is FieldKind.YES}


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> Field:
    options = schema.get("enum")
    kind = _kind(schema)
    return Field(
        name=name,
        kind=kind,
        is_required=is_required and kind is not FieldKind.YES,
        description=str(schema.get("description", "")),
        options=tuple(map(str, options or ())),
        least=schema.get("minimum"),
        most=schema.get("maximum"),
        length=schema.get("maxLength"),
    )


def _kind(schema: Mapping[str, Any]) -> FieldKind:
    options, of = schema.get("enum"), schema.get("type")
    if options and all(isinstance(each, str) for each in options):
        return FieldKind.CHOICE
    if of == "string":
        return FieldKind.TEXT if schema.get("maxLength", LONG_TEXT + 1) > LONG_TEXT else FieldKind.LINE
    if of == "array" and schema.get("items", {}).get("type") == "string":
        return FieldKind.LINES
    return {"number": FieldKind.NUMBER, "integer": FieldKind.WHOLE, "boolean": FieldKind.YES}.get(
        str(of), FieldKind.JSON
    )


def _value(field: Field, text: str) -> Any:
    if field.kind is FieldKind.YES:
        return text == "on"
    if field.kind is FieldKind.LINES:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.kind in (FieldKind.NUMBER, FieldKind.WHOLE, FieldKind.JSON):
        try:
            return int(text) if field.kind is FieldKind.WHOLE else json.loads(text)
        except ValueError:
            told = "Must be JSON." if field.kind is FieldKind.JSON else "Must be a number."
            raise InvalidRequest(errors=[FieldProblem((field.name,), told)]) from None
    return text
