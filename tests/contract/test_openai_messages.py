"""Messages as OpenAI's chat format has them, at every door that takes messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.house import WHERE, Client, Json, assert_error

pytestmark = pytest.mark.one_house

OURS = {"name": "repair", "input": {"value": "full_service"}}


def theirs(arguments: Any, name: str = "repair") -> Json:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


async def reward(labs: Client, *messages: Json) -> float:
    body = await labs.ok("POST", "/evaluate", {**WHERE, "messages": list(messages)})
    found: float = body["reward"]
    return found


async def calls_of(labs: Client, message: Json) -> list[Json]:
    """The tool calls that the log has of a turn with this message."""
    episode = await labs.create()
    await labs.say(episode, {"role": "user", "content": "Right.", **message})
    calls: list[Json] = (await labs.log(episode))[1]["tool_calls"]
    return calls


async def test_content_parts_are_one_text(labs: Client) -> None:
    parts = [{"type": "text", "text": "How did it happen?"}, {"type": "text", "text": "Did you fall off?"}]
    answer = {"role": "user", "content": "There was glass on the road."}
    apart = await reward(labs, {"role": "assistant", "content": parts, "name": "bot"}, answer)
    assert apart == await reward(
        labs, {"role": "assistant", "content": "How did it happen?\nDid you fall off?"}, answer
    )


@pytest.mark.parametrize(
    "content", [None, 7, [{"type": "image_url", "image_url": {"url": "x"}}], ["How?"], [{"type": "text"}], {}]
)
async def test_what_is_no_text_is_400(labs: Client, content: Any) -> None:
    body = {**WHERE, "messages": [{"role": "assistant", "content": content}]}
    assert_error(await labs.call("POST", "/evaluate", body), 400, "invalid_request")


@pytest.mark.parametrize("message", [{"content": None, "tool_calls": [OURS]}, {"tool_calls": [OURS]}])
async def test_content_may_be_missing_beside_calls(labs: Client, message: Json) -> None:
    assert (await labs.say(await labs.create(), {"role": "user", **message}))["turn"] == 1


async def test_function_calls_are_ours(labs: Client) -> None:
    assert await calls_of(labs, {"tool_calls": [theirs(json.dumps(OURS["input"]))]}) == [OURS]
    assert await calls_of(labs, {"tool_calls": [theirs(OURS["input"])]}) == [OURS]


@pytest.mark.parametrize("arguments", ["{not json", "[1]", "7", '"text"', '{"a": NaN}', ["x"]])
async def test_arguments_that_are_no_object_are_a_call_that_fits_nothing(labs: Client, arguments: Any) -> None:
    [call] = await calls_of(labs, {"tool_calls": [theirs(arguments)]})
    assert (call["name"], list(call["input"])) == ("repair", ["arguments"])


async def test_no_arguments_are_an_empty_object(labs: Client) -> None:
    assert (await calls_of(labs, {"tool_calls": [theirs("")]}))[0]["input"] == {}


@pytest.mark.parametrize(
    "call",
    [theirs('{"a": "\\u0000"}'), theirs(json.dumps({"a": "x" * 20_001})), theirs("{}", name=""), {"function": {}}],
)
async def test_calls_that_cannot_be_kept_are_400(labs: Client, call: Json) -> None:
    body = {**WHERE, "messages": [{"role": "assistant", "content": "Hi", "tool_calls": [call]}]}
    assert_error(await labs.call("POST", "/evaluate", body), 400, "invalid_request")


async def test_tool_messages_are_part_of_the_agents_turn(labs: Client) -> None:
    episode = await labs.create()
    result = {"role": "tool", "tool_call_id": "call_1", "content": "There was glass on the road."}
    asked = {"role": "user", "content": "How did it happen?", "tool_calls": [theirs('{"value": "full_service"}')]}
    opening = episode["initial_observation"]
    first = await labs.say(episode, opening, asked, result)
    assert first["turn"] == 1
    second = await labs.say(
        episode, opening, asked, result, first["observation"], {"role": "user", "content": "I see."}
    )
    assert second["turn"] == 2
    assert [each["role"] for each in await labs.log(episode)] == ["assistant", "user"] * 2 + ["assistant"]
