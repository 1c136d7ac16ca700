"""What a model writes besides what it says: the same conversation means the same through every API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.house import WHERE, Client, Json, agent
from tests.contract.test_doors import BEFORE, LAST, ONE_NUMBER, openrlhf, post
from trainer_client.wire import MAX_CONTENT_CHARACTERS

THOUGHT = "Was it dark? I should ask whether the tyre was wet, and how it happened."
SPOKEN = {
    "closed": f"<think>\n{THOUGHT}\n</think>\n\n{LAST}",
    "a bare end": f"{THOUGHT}\n</think>\n\n{LAST}",
    "afterwards, unclosed": f"{LAST}\n<think>{THOUGHT}",
    "long": f"<think>{THOUGHT * 400}</think>{LAST}",
}
ALONE = (f"<think>{THOUGHT}</think>", f"<think>{THOUGHT}", f"{THOUGHT}</think>")
TOO_LONG = f"{LAST} " + "I see. " * (MAX_CONTENT_CHARACTERS // 6)


def number(told: Any) -> float:
    """The reward, wherever an API puts it."""
    if "rewards" in told:
        return float(told["rewards"][0])
    if "choices" in told:
        import json

        return float(json.loads(told["choices"][0]["message"]["content"])["reward"])
    if "data" in told:
        [only] = told["data"]
        return float((only.get("probs") or only["embedding"])[0])
    return float(told["reward"])


def through(door: str) -> tuple[str, Any]:
    path, made = ONE_NUMBER[door][:2]
    return path, made


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_reasoning_changes_no_reward(labs: Client, door: str) -> None:
    path, made = through(door)
    plain = number(await post(labs, path, made(LAST)))
    forms = {name: text for name, text in SPOKEN.items() if name != "long" or door != "openai"}
    assert {name: number(await post(labs, path, made(text))) for name, text in forms.items()} == dict.fromkeys(
        forms, plain
    )


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_a_turn_of_reasoning_alone_is_an_empty_turn(labs: Client, door: str) -> None:
    path, made = through(door)
    plain = number(await post(labs, path, made("")))
    assert [number(await post(labs, path, made(text))) for text in ALONE] == [plain] * len(ALONE)


@pytest.mark.parametrize("text", [*SPOKEN.values()][:3])
async def test_the_persona_does_not_hear_it(labs: Client, text: str) -> None:
    async def observed(said: str) -> Json:
        episode = await labs.ok("POST", "/episodes", {**WHERE, "config": {"seed": 3}})
        turn = await labs.turn(episode["episode_id"], [agent(said)])
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


@pytest.mark.parametrize("door", set(ONE_NUMBER) - {"openai"})
async def test_a_reply_that_is_too_long_costs_that_sample_alone(labs: Client, door: str) -> None:
    path, made = through(door)
    assert number(await post(labs, path, made(TOO_LONG))) == number(await post(labs, path, made("")))


async def test_one_long_reply_of_two_leaves_the_other_its_reward(labs: Client) -> None:
    path = "/api/v1/compat/openrlhf/get_reward"
    both = (await post(labs, path, openrlhf(LAST, TOO_LONG)))["rewards"]
    assert both == (await post(labs, path, openrlhf(LAST, "")))["rewards"]
    assert both[0] > both[1]
