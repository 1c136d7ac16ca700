"""Says what became of an agent's tool calls, so that it can mend them: a wrong call costs reward and is no error.

It speaks of the tool's public schema and of what the agent wrote itself, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema

from reward_server.transcripts.transcript import check_calls, tool_of
from scenarios.schema import Tool
from trainer_client.wire import ToolCall
from trainer_client.wire.base import UNREADABLE

MOST_CHARACTERS = 300
TOO_DEEP = "The input is nested too deeply."


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a call, by the name that the agent gave."""

    name: str
    error: str | None
    """Why it does not fit; None where it was accepted."""


def tool_results(calls: Sequence[ToolCall], tools: Sequence[Tool]) -> list[ToolResult]:
    """The outcome of each call, in order."""
    uses = zip(calls, check_calls(calls, tools), strict=True)
    return [ToolResult(call.name, None if use.valid else _shortened(_why(call, tools))) for call, use in uses]


def _why(call: ToolCall, tools: Sequence[Tool]) -> str:
    tool = tool_of(call, tools)
    if tool is None:
        known = _list(known_tool.id for known_tool in tools)
        return f"There is no such tool; there are: {known}." if tools else "This scenario has no tools."
    if call.type is not None and call.type != tool.type:
        return f"This tool is of type {tool.type}, not {call.type}."
    if _is_unread(call.input):
        return f"The arguments are not a JSON object. {_shape(tool)}"
    try:
        error = jsonschema.exceptions.best_match(
            jsonschema.Draft202012Validator(tool.input_schema).iter_errors(call.input)
        )
    except RecursionError:
        return TOO_DEEP
    return TOO_DEEP if error is None else f"{_where(error)}{error.message}. {_shape(tool)}"


def _is_unread(given: Mapping[str, Any]) -> bool:
    """True if the arguments came as text, and not as that of an object."""
    return given.keys() == {UNREADABLE} and not isinstance(given[UNREADABLE], dict)


def _where(error: jsonschema.ValidationError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{path}: " if path else ""


def _shape(tool: Tool) -> str:
    if tool.options is not None:
        return f'The input is {{"value": one of {_list(tool.options)}}}.'
    fields = tool.input_schema.get("properties", {})
    return f"The input has the fields {_list(fields)}; the tool's input_schema says more." if fields else ""


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
