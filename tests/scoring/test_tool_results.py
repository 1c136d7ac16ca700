"""What an agent is told of its tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.transcripts.tool_results import MOST_CHARACTERS, ToolResult, tool_results
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
    [found] = tool_results([ToolCall(name=name, input=given)], TOOLS)
    assert (found.name, len(found.error or "") <= MOST_CHARACTERS) == (name, True)
    assert told in (found.error or "")


@pytest.mark.parametrize("arguments", ['{"value": "tube"', '["tube"]', "null", "tube"])
def test_arguments_that_are_no_json_object_are_called_so(arguments: str) -> None:
    call = ToolCall.model_validate({"type": "function", "function": {"name": "repair", "arguments": arguments}})
    [found] = tool_results([call], TOOLS)
    assert found.error == 'The arguments are not a JSON object. The input is {"value": one of tube, tyre}.'


def test_each_call_has_its_result_in_order() -> None:
    calls = [ToolCall(name="refund", input={}), ToolCall(name="Book a repair", input={"value": "tube"})]
    wrong, accepted = tool_results(calls, TOOLS)
    assert wrong.error is not None
    assert accepted == ToolResult("Book a repair", None)


def test_the_type_has_to_be_the_tools() -> None:
    [found] = tool_results([ToolCall(name="repair", type="artifact", input={"value": "tube"})], TOOLS)
    assert found.error == "This tool is of type decision, not artifact."


def test_without_tools_there_is_none_to_name() -> None:
    [found] = tool_results([ToolCall(name="repair", input={})], ())
    assert found.error == "This scenario has no tools."


def test_a_long_answer_is_shortened_and_a_deep_one_is_no_failure() -> None:
    tree = ARTIFACT.model_copy(
        update={
            "json_schema": {
                "$ref": "#/$defs/t",
                "$defs": {"t": {"type": "object", "additionalProperties": {"$ref": "#/$defs/t"}}},
            }
        }
    )
    [long] = tool_results([ToolCall(name="sheet", input={"summary": ["x" * 5000]})], TOOLS)
    assert len(long.error or "") == MOST_CHARACTERS
    [deep] = tool_results([ToolCall(name="sheet", input=nested(3000))], (tree,))
    assert "deep" in (deep.error or "")
