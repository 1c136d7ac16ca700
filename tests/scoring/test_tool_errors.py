"""What an agent is told of a tool call that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.scoring.tool_errors import MOST_CHARACTERS, tool_errors
from scenarios.schema import Tool
from trainer_client.wire import ToolCall

DECISION = Tool(id="repair", type="decision", name="Book a repair", mode="options", options=("tube", "tyre"))
ARTIFACT = Tool(
    id="sheet",
    type="artifact",
    name="Job sheet",
    mode="json_schema",
    json_schema={
        "type": "object",
        "additionalProperties": False,
        "required": ["summary"],
        "properties": {"summary": {"type": "string"}, "parts": {"type": "array", "items": {"type": "string"}}},
    },
)
TOOLS = (DECISION, ARTIFACT)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"s": value}
    return value


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("refund", {}, "There is no such tool; there are: repair, sheet."),
        ("repair", {"option": "tube"}, "one of tube, tyre"),
        ("repair", {"value": "saddle"}, "one of tube, tyre"),
        ("sheet", {}, "'summary' is a required property"),
        ("sheet", {"summary": "a", "cost": 1}, "'cost' was unexpected"),
        ("sheet", {"summary": "a", "parts": ["b", 1]}, "parts.1: 1 is not of type 'string'"),
        ("sheet", {"summary": "a", "cost": "x" * 5000}, "'cost' was unexpected"),
    ],
)
def test_it_says_what_is_wrong(name: str, given: dict[str, Any], told: str) -> None:
    [error] = tool_errors([ToolCall(name=name, input=given)], TOOLS)
    assert (error.name, len(error.message) <= MOST_CHARACTERS) == (name, True)
    assert told in error.message


def test_a_call_that_fits_is_no_error() -> None:
    assert tool_errors([ToolCall(name="Book a repair", input={"value": "tube"})], TOOLS) == []


def test_the_type_has_to_be_the_tools() -> None:
    [error] = tool_errors([ToolCall(name="repair", type="artifact", input={"value": "tube"})], TOOLS)
    assert error.message == "This tool is of type decision, not artifact."


def test_without_tools_there_is_none_to_name() -> None:
    [error] = tool_errors([ToolCall(name="repair", input={})], ())
    assert error.message == "This scenario has no tools."


def test_a_long_answer_is_shortened_and_a_deep_one_is_no_failure() -> None:
    tree = ARTIFACT.model_copy(
        update={
            "json_schema": {
                "$ref": "#/$defs/t",
                "$defs": {"t": {"type": "object", "additionalProperties": {"$ref": "#/$defs/t"}}},
            }
        }
    )
    [long] = tool_errors([ToolCall(name="sheet", input={"summary": ["x" * 5000]})], TOOLS)
    assert len(long.message) == MOST_CHARACTERS
    [deep] = tool_errors([ToolCall(name="sheet", input=nested(3000))], (tree,))
    assert "deep" in deep.message
