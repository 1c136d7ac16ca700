"""POST /batch/episodes and /batch/turns: a step of a batch is what a turn by itself is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.play.simulator import Reply, Simulator
from reward_server.episodes import stage
from reward_server.episodes.stage import REPLIES_PER_JOB
from reward_server.errors import JudgeFailed
from tests.contract.house import OTHER, WHERE, Client, House, Json, agent, assert_error

pytestmark = pytest.mark.one_house

SAID = ("How did it happen?", "When do you need it back?", "I see.")
CONFIG = {"seed": 7, "persona_slug": "plainspoken"}


def item(episode: Json, *messages: Any, **fields: Any) -> Json:
    sent = [agent(m) if isinstance(m, str) else m for m in messages]
    return {"episode_id": episode["episode_id"], "messages": sent, **fields}


async def group(labs: Client, count: int = 3, **fields: Any) -> list[Json]:
    made = await labs.ok("POST", "/batch/episodes", {**WHERE, "config": CONFIG, "count": count, **fields})
    episodes: list[Json] = made["episodes"]
    return episodes


async def play(labs: Client, *items: Json, key: str | None = None) -> list[Json]:
    headers = {"Idempotency-Key": key} if key else {}
    results: list[Json] = (await labs.ok("POST", "/batch/turns", {"items": list(items)}, headers=headers))["results"]
    return results


def turn_of(result: Json) -> Json:
    return {name: value for name, value in result.items() if name not in ("episode_id", "status", "request_id")}


async def test_a_group_shares_scenario_seed_and_persona(labs: Client, house: House) -> None:
    made = await labs.ok("POST", "/batch/episodes", {**WHERE, "count": 4})
    episodes = made["episodes"]
    assert len({each["episode_id"] for each in episodes}) == 4
    assert len({each["initial_observation"]["content"] for each in episodes}) == 1
    answers = await play(labs, *(item(each, "How did it happen?") for each in episodes))
    assert len({each["observation"]["content"] for each in answers}) == 1


async def test_items_may_differ(labs: Client) -> None:
    made = await labs.ok("POST", "/batch/episodes", {"items": [{**WHERE, "config": CONFIG}, OTHER]})
    first, second = made["episodes"]
    assert (await labs.read(first))["collection_slug"] == WHERE["collection_slug"]
    assert (await labs.read(second))["collection_slug"] == OTHER["collection_slug"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        WHERE,
        {**WHERE, "count": 0},
        {**WHERE, "count": 101},
        {"count": 2},
        {**WHERE, "count": 1, "items": [WHERE]},
        {"items": []},
    ],
)
async def test_what_is_no_group_is_400(labs: Client, body: Json) -> None:
    assert_error(await labs.call("POST", "/batch/episodes", body), 400, "invalid_request")


async def test_a_group_is_begun_whole_or_not_at_all(labs: Client) -> None:
    body = {"items": [WHERE, {**WHERE, "scenario_slug": "nowhere"}]}
    refused = await labs.call("POST", "/batch/episodes", body)
    assert_error(refused, 404, "scenario_not_found")
    assert refused.json()["message"].startswith("items.1: There is no such scenario")
    body = {"items": [WHERE, WHERE, {**WHERE, "config": {"max_turns": 50}}]}
    [problem] = assert_error(await labs.call("POST", "/batch/episodes", body), 400, "invalid_request")["errors"]
    assert problem["loc"] == ["items", 2, "config", "max_turns"]
    assert (await labs.ok("GET", "/episodes"))["data"] == []


async def test_a_batch_of_turns_answers_what_single_turns_answer(labs: Client) -> None:
    alone = [await labs.create() for _ in SAID]
    together = await group(labs, len(SAID))
    for step in range(2):
        words = [SAID[(i + step) % len(SAID)] for i in range(len(SAID))]
        singly = [await labs.say(each, word) for each, word in zip(alone, words, strict=True)]
        results = await play(labs, *(item(each, word) for each, word in zip(together, words, strict=True)))
        assert [each["episode_id"] for each in results] == [each["episode_id"] for each in together]
        assert [turn_of(each) for each in results] == [turn_of(each) for each in singly]
        assert {each["scoring_version"] for each in results} == {singly[0]["scoring_version"]}


async def test_one_call_of_the_scorer_and_one_commit(labs: Client, house: House) -> None:
    episodes = await group(labs, 5)
    house.scored.clear()
    await play(labs, *(item(each, "How did it happen?") for each in episodes))
    assert house.scored == [5]


async def test_an_item_that_fails_fails_alone(labs: Client, house: House) -> None:
    good, complete, failing = await group(labs)
    await labs.call("DELETE", f"/episodes/{complete['episode_id']}")
    unknown = {"episode_id": "ep_aaaaaaaaaaaaaaaaaaaaaaaa"}
    house.failure = lambda request: JudgeFailed() if request.transcript.turns[0].agent == "Fail." else None
    results = await play(
        labs,
        item(good, "How did it happen?"),
        item(complete, "Hello?"),
        item(failing, "Fail."),
        item(unknown, "Hello?"),
        item(good, "Again."),
        item({"episode_id": "nonsense"}, "Hello?"),
    )
    assert [each.get("code", "ok") for each in results] == [
        "ok",
        "episode_complete",
        "judge_failed",
        "episode_not_found",
        "invalid_request",
        "episode_not_found",
    ]
    assert all("reward" not in each for each in results[1:])
    assert (await labs.read(failing))["turn"] == 0
    house.failure = lambda request: None
    assert (await play(labs, item(failing, "Fail.")))[0]["turn"] == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"messages": [agent("x" * 10_001)]},
            "messages.0.content: Must have at most 10,000 characters, this has 10,001.",
        ),
        (
            {"messages": [agent("\ufdfa" * 2_000)]},
            "messages.0.content: Must have at most 20,000 characters in Unicode's form NFKC, this has 36,000: "
            "use fewer ligatures and signs, or less text.",
        ),
        ({"messages": []}, "messages: Must have at least 1 entry."),
        ({"messages": [agent("Hello?")], "stream": True}, "stream: Is not a known field."),
        ({}, "messages: Is required."),
    ],
)
async def test_an_item_that_is_no_turn_fails_alone(labs: Client, fields: Json, told: str) -> None:
    good, bad = await group(labs, 2)
    wrong = {"episode_id": bad["episode_id"], **fields}
    first, second = await play(labs, wrong, item(good, "How did it happen?"))
    assert first == {
        "episode_id": bad["episode_id"],
        "status": "error",
        "message": told,
        "code": "invalid_request",
    }
    assert (second["status"], second["turn"]) == ("success", 1)
    assert [(await labs.read(each))["turn"] for each in (good, bad)] == [1, 0]
    [alone] = await play(labs, wrong)
    assert alone["code"] == "invalid_request"


async def test_a_batch_with_a_bad_item_sent_again_with_its_key_is_played_once(labs: Client) -> None:
    good, bad = await group(labs, 2)
    items = [item(good, "How did it happen?"), item(bad, "x" * 10_001)]
    assert await play(labs, *items, key="k") == await play(labs, *items, key="k")
    assert (await labs.read(good))["turn"] == 1
    changed = {"items": [items[0], item(bad, "y" * 10_001)]}
    other = await labs.call("POST", "/batch/turns", changed, headers={"Idempotency-Key": "k"})
    assert_error(other, 409, "idempotency_mismatch")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {"items": "x"},
        {"items": [{"messages": [agent("Hello?")]}]},
        {"items": [{"episode_id": 5, "messages": [agent("Hello?")]}]},
        {"items": [None]},
        {"items": [{"episode_id": "ep_a", "messages": []}], "more": 1},
        {"items": [{"episode_id": "ep_a", "messages": []}] * 101},
        [],
    ],
)
async def test_what_is_no_batch_of_turns_is_400(labs: Client, body: Any) -> None:
    assert_error(await labs.call("POST", "/batch/turns", body), 400, "invalid_request")


async def test_a_persona_that_fails_fails_alone_and_is_named_by_the_kind_of_its_error(
    labs: Client, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies go to a thread a few at a time; the bad one is among others there."""
    episodes = await group(labs, 2 * REPLIES_PER_JOB + 1)
    parts: list[int] = []
    reply, each_alone = Simulator.reply, stage._each_alone

    def answered(self: Simulator, state: PersonaState, turn: AgentTurn, *told: Any) -> Reply:
        if turn.text == "Fail.":
            raise LookupError("quokka-of-the-case")
        return reply(self, state, turn, *told)

    def counted(acts: Sequence[Callable[[], Reply]]) -> list[Reply | Exception]:
        parts.append(len(acts))
        assert threading.current_thread() is not threading.main_thread()
        return each_alone(acts)

    monkeypatch.setattr(Simulator, "reply", answered)
    monkeypatch.setattr(stage, "_each_alone", counted)
    texts = ["Fail." if number == 3 else f"How did it happen, {number}?" for number in range(len(episodes))]
    results = await play(labs, *map(item, episodes, texts))
    assert sorted(parts) == [1, REPLIES_PER_JOB, REPLIES_PER_JOB]
    codes = [each.get("code", each.get("turn")) for each in results]
    assert codes == ["persona_failed" if text == "Fail." else 1 for text in texts]
    assert [each["episode_id"] for each in results] == [each["episode_id"] for each in episodes]
    assert "LookupError" in house.logs.getvalue()
    assert "quokka" not in house.logs.getvalue()
    assert_error(await labs.turn(episodes[3], "Fail."), 502, "persona_failed")


async def test_terminate_and_histories_work_as_for_a_turn(labs: Client) -> None:
    ended, positioned = await group(labs, 2)
    log = [positioned["initial_observation"], agent("How did it happen?")]
    first = await play(labs, item(ended, "Bye.", terminate=True), item(positioned, *log))
    assert first[0]["terminal_reason"] == "client_terminated"
    again = await play(labs, item(positioned, *log))
    assert turn_of(again[0]) == turn_of(first[1])
    assert (await labs.read(positioned))["turn"] == 1
    wrong = await play(labs, item(positioned, {"role": "assistant", "content": "No."}, *log[1:], *log))
    assert wrong[0]["code"] == "history_mismatch"


async def test_a_batch_sent_again_with_its_key_is_played_once(labs: Client) -> None:
    episodes = await group(labs, 2)
    items = [item(each, "How did it happen?") for each in episodes]
    first, second = await play(labs, *items, key="k"), await play(labs, *items, key="k")
    assert first == second
    assert [(await labs.read(each))["turn"] for each in episodes] == [1, 1]
    other = await labs.call("POST", "/batch/turns", {"items": items[:1]}, headers={"Idempotency-Key": "k"})
    assert_error(other, 409, "idempotency_mismatch")


async def test_a_group_made_again_with_its_key_is_the_same_group(labs: Client) -> None:
    headers = {"Idempotency-Key": "g"}
    made = [await labs.ok("POST", "/batch/episodes", {**WHERE, "count": 2}, headers=headers) for _ in range(2)]
    assert made[0]["episodes"] == made[1]["episodes"]


async def test_another_turn_of_an_episode_in_work_is_in_progress(labs: Client, house: House) -> None:
    held, free = await group(labs, 2)
    house.matcher.close()
    answering = asyncio.create_task(labs.say(held, "How did it happen, please?"))
    await house.matcher.somebody_waits()
    batch = asyncio.create_task(play(labs, item(held, "Hello?"), item(free, "And what about the wheel?")))
    await house.matcher.somebody_waits()
    house.matcher.open()
    results = await batch
    assert (await answering)["turn"] == 1
    assert [each.get("code", "ok") for each in results] == ["turn_in_progress", "ok"]


async def test_other_labs_episodes_are_not_found(house: House) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("zenith")) as zenith:
        [mine] = await group(acme, 1)
        assert (await play(zenith, item(mine, "Hi.")))[0]["code"] == "episode_not_found"


async def test_a_breakdown_is_for_keys_with_full_scores(house: House) -> None:
    full = await house.key("acme", full_scores=True)
    async with house.client(await house.key("acme")) as some, house.client(full) as all_of_it:
        first, second = await group(some, 2)
        assert "score_breakdown" in (await play(all_of_it, item(first, "How did it happen?")))[0]
        assert "score_breakdown" not in (await play(some, item(second, "How did it happen?")))[0]
