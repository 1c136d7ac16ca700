"""What a model writes besides what it says: the same conversation means the same through every API."""

from __future__ import annotations

import json

import pytest

from tests.contract.house import WHERE, Client, Json
from tests.contract.test_doors import BEFORE, LAST, ONE_NUMBER, asked, openrlhf, post, reward_of
from trainer_client.wire import MAX_CONTENT_CHARACTERS

pytestmark = pytest.mark.one_house

THOUGHT = "Was it dark? I should ask whether the tyre was wet, and how it happened."
SPOKEN = {
    "closed": f"<think>\n{THOUGHT}\n</think>\n\n{LAST}",
    "a bare end": f"{THOUGHT}\n</think>\n\n{LAST}",
    "afterwards, unclosed": f"{LAST}\n<think>{THOUGHT}",
    "long": f"<think>{THOUGHT * 400}</think>{LAST}",
}
ALONE = (f"<think>{THOUGHT}</think>", f"<think>{THOUGHT}", f"{THOUGHT}</think>")
TOO_LONG = f"{LAST} " + "I see. " * (MAX_CONTENT_CHARACTERS // 6)


async def reward(labs: Client, door: str, reply: str) -> float:
    return reward_of(door, await asked(labs, door, reply))[0]


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_reasoning_changes_no_reward(labs: Client, door: str) -> None:
    plain = await reward(labs, door, LAST)
    forms = {name: text for name, text in SPOKEN.items() if name != "long" or door != "openai"}
    assert {name: await reward(labs, door, text) for name, text in forms.items()} == dict.fromkeys(forms, plain)


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_a_turn_of_reasoning_alone_is_an_empty_turn(labs: Client, door: str) -> None:
    plain = await reward(labs, door, "")
    assert [await reward(labs, door, text) for text in ALONE] == [plain] * len(ALONE)


@pytest.mark.parametrize("text", [*SPOKEN.values()][:3])
async def test_the_persona_does_not_hear_it(labs: Client, text: str) -> None:
    async def observed(said: str) -> Json:
        episode = await labs.create(config={"seed": 3})
        turn = await labs.say(episode, said)
        return {name: turn[name] for name in ("observation", "reward", "scores")}

    assert await observed(text) == await observed(LAST)


async def test_reasoning_parts_and_fields_are_not_said(labs: Client) -> None:
    def wanted(last: Json) -> Json:
        return {**WHERE, "messages": [*BEFORE, {"role": "assistant", **last}]}

    plain = (await labs.ok("POST", "/evaluate", wanted({"content": LAST})))["reward"]
    parts = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": LAST}]
    for last in ({"content": parts}, {"content": LAST, "reasoning_content": THOUGHT}):
        assert (await labs.ok("POST", "/evaluate", wanted(last)))["reward"] == plain
    empty = (await labs.ok("POST", "/evaluate", wanted({"content": ""})))["reward"]
    for last in ({"content": parts[:1]}, {"content": None, "reasoning": THOUGHT}):
        assert (await labs.ok("POST", "/evaluate", wanted(last)))["reward"] == empty


@pytest.mark.parametrize("door", [each for each in ONE_NUMBER if each != "openai"])
async def test_a_reply_that_is_too_long_costs_that_sample_alone(labs: Client, door: str) -> None:
    assert await reward(labs, door, TOO_LONG) == await reward(labs, door, "")


async def test_one_long_reply_of_two_leaves_the_other_its_reward(labs: Client) -> None:
    path = "/api/v1/compat/openrlhf/get_reward"
    both = (await post(labs, path, openrlhf(LAST, TOO_LONG)))["rewards"]
    assert both == (await post(labs, path, openrlhf(LAST, "")))["rewards"]
    assert both[0] > both[1]


RIGHT = {"name": "repair", "arguments": {"value": "new_tube"}}


def call(given: Json = RIGHT) -> str:
    return f"<tool_call>\n{json.dumps(given)}\n</tool_call>"


async def test_tool_calls_of_every_form_are_the_same_call(labs: Client) -> None:
    async def reward_with(**last: object) -> float:
        messages = [*BEFORE, {"role": "assistant", "content": LAST, **last}]
        return float((await labs.ok("POST", "/evaluate", {**WHERE, "messages": messages}))["reward"])

    function = {"name": "repair", "arguments": json.dumps(RIGHT["arguments"])}
    modern = await reward_with(tool_calls=[{"id": "1", "type": "function", "function": function}])
    assert modern > await reward_with()
    assert await reward_with(function_call=function) == modern
    assert await reward_with(content=f"{LAST}\n{call()}") == modern
    wrong = await reward_with(tool_calls=[{"name": "repair", "input": {"value": "a hammer"}}])
    assert await reward_with(content=f"{LAST}<tool_call>{{repair: tube</tool_call>") == wrong


async def test_a_tool_call_in_the_text_is_made_in_an_episode_too(labs: Client) -> None:
    async def taken(*said: object) -> Json:
        episode = await labs.create(config={"seed": 3})
        turn = await labs.say(episode, *said)
        return {name: turn[name] for name in ("observation", "reward", "scores")}

    apart = {"role": "user", "content": LAST, "tool_calls": [{"name": "repair", "input": RIGHT["arguments"]}]}
    assert await taken(f"{LAST}\n{call()}") == await taken(apart)


async def test_results_of_functions_in_the_older_form_are_read(labs: Client) -> None:
    messages = [
        *BEFORE,
        {"role": "function", "name": "repair", "content": "ok"},
        {"role": "assistant", "content": LAST},
    ]
    plain = [*BEFORE, {"role": "assistant", "content": LAST}]
    found = [(await labs.ok("POST", "/evaluate", {**WHERE, "messages": each}))["reward"] for each in (messages, plain)]
    assert found[0] == found[1]
