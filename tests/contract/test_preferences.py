"""GET and POST /preferences, their export and its manifest."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.house import COLLECTION, OTHER, WHERE, Client, House, Json, assert_error
from tests.contract.test_evaluate import BAD, FAIR, GOOD, dialogue

pytestmark = pytest.mark.one_house

ASKS = "Good morning. How did it happen?"
PUSHES = "You should buy a new bike instead."


async def compare(labs: Client, a: list[Json], b: list[Json], **fields: Any) -> Json:
    return await labs.ok(
        "POST", "/compare", {**WHERE, "response_a": {"messages": a}, "response_b": {"messages": b}, **fields}
    )


async def label(labs: Client, winner: str = "a", a: list[Json] = GOOD, b: list[Json] = BAD, **fields: Any) -> Json:
    sides = {"response_a": {"messages": a}, "response_b": {"messages": b}}
    return await labs.ok("POST", "/preferences", {**WHERE, **sides, "winner": winner, **fields})


async def exported(labs: Client, query: str = "") -> list[Json]:
    response = await labs.call("GET", f"/preferences/export?{query}")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/jsonl"
    return [json.loads(line) for line in response.text.splitlines()]


async def manifest(labs: Client, query: str = "") -> Json:
    return await labs.ok("GET", f"/preferences/manifest?{query}")


async def play(labs: Client, house: House, *lines: str, seed: int = 7) -> Json:
    """A finished episode."""
    episode = await labs.create(config={"seed": seed})
    for line in lines[:-1]:
        await labs.say(episode, line)
    await labs.say(episode, lines[-1], terminate=True)
    house.clock.advance(timedelta(seconds=1))
    return episode


async def test_a_person_can_judge_a_stored_comparison(labs: Client) -> None:
    compared = await compare(labs, GOOD, BAD)
    said = await labs.ok(
        "POST", "/preferences", {"comparison_id": compared["comparison_id"], "winner": "b", "labeller": "rater-7"}
    )
    assert said["id"].startswith("pref_")
    assert (said["source"], said["winner"], said["labeller"]) == ("label", "b", "rater-7")
    assert said["reward_a"] == compared["reward_a"]
    assert said["scoring_version"] == compared["scoring_version"]
    assert said["response_a"]["messages"] == GOOD
    listed = (await labs.ok("GET", "/preferences"))["data"]
    assert {each["id"] for each in listed} == {said["id"], compared["comparison_id"]}
    by_source = (await labs.ok("GET", "/preferences?source=compare"))["data"]
    assert [(each["source"], each["judge"]) for each in by_source] == [("compare", by_source[0]["judge"])]
    assert by_source[0]["judge"]


async def test_what_a_person_says_is_one_of_both(labs: Client) -> None:
    compared = await compare(labs, GOOD, BAD)
    both = {"comparison_id": compared["comparison_id"], **WHERE, "response_a": {"messages": GOOD}, "winner": "a"}
    for body in (both, {"winner": "a"}, {**WHERE, "winner": "a"}, {**both, "winner": "c"}):
        assert_error(await labs.call("POST", "/preferences", body), 400, "invalid_request")
    silent = {"messages": [{"role": "user", "content": "Hello?"}]}
    nobody = {**WHERE, "response_a": silent, "response_b": silent, "winner": "a"}
    assert_error(await labs.call("POST", "/preferences", nobody), 400, "nothing_to_score")
    tie = {"comparison_id": compared["comparison_id"], "winner": "tie", "margin": 0.5}
    assert_error(await labs.call("POST", "/preferences", tie), 400, "invalid_request")


async def test_a_retried_label_is_kept_once(labs: Client) -> None:
    body = {**WHERE, "response_a": {"messages": GOOD}, "response_b": {"messages": BAD}, "winner": "a"}
    first = await labs.ok("POST", "/preferences", body, headers={"Idempotency-Key": "k"})
    again = await labs.ok("POST", "/preferences", body, headers={"Idempotency-Key": "k"})
    assert first["id"] == again["id"]
    assert len((await labs.ok("GET", "/preferences"))["data"]) == 1


async def test_the_list_comes_in_pages_over_both_sources(labs: Client, house: House) -> None:
    for winner in ("a", "b"):
        compared = await compare(labs, GOOD, BAD)
        await labs.ok("POST", "/preferences", {"comparison_id": compared["comparison_id"], "winner": winner})
        house.clock.advance(timedelta(seconds=1))
    whole = [each["id"] for each in (await labs.ok("GET", "/preferences?limit=100"))["data"]]
    assert len(whole) == 4
    seen, query = [], "limit=1"
    while True:
        page = await labs.ok("GET", f"/preferences?{query}")
        seen += [each["id"] for each in page["data"]]
        if "next_cursor" not in page:
            break
        query = f"limit=1&cursor={page['next_cursor']}"
    assert seen == whole
    assert_error(await labs.call("GET", "/preferences?cursor=made-up"), 400, "invalid_cursor")


async def test_a_comparison_becomes_a_line_for_trl(labs: Client) -> None:
    compared = await compare(labs, BAD, GOOD)
    assert compared["winner"] == "b"
    [line] = await exported(labs, "format=trl")
    assert line["prompt"] == GOOD[:1]
    assert line["chosen"] == GOOD[1:-1]
    assert line["rejected"] == BAD[1:-1]
    assert line["margin"] == compared["margin"]
    told = line["provenance"]
    assert (told["source"], told["comparison_id"]) == ("compare", compared["comparison_id"])
    assert (told["reward_chosen"], told["reward_rejected"]) == (compared["reward_b"], compared["reward_a"])
    assert told["scoring_version"] == compared["scoring_version"]
    assert told["judge"]
    assert "provenance" not in (await exported(labs, "provenance=false"))[0]


async def test_the_agent_is_the_assistant_whatever_it_was_called(labs: Client) -> None:
    calls = [{"name": "note", "input": {"text": "x"}}]
    a = dialogue(ASKS, "Glass.", agent_role="user")
    a[1]["tool_calls"] = calls
    await label(labs, "a", a, dialogue(PUSHES, "No.", agent_role="user"), agent_role="user")
    [line] = await exported(labs)
    assert [message["role"] for message in line["prompt"]] == ["user"]
    call = {"type": "function", "function": {"name": "note", "arguments": {"text": "x"}}}
    assert line["chosen"] == [{"role": "assistant", "content": ASKS, "tool_calls": [call]}]
    assert line["rejected"] == [{"role": "assistant", "content": PUSHES}]
    assert "margin" not in line
    assert await exported(labs, "format=openai") == []
    assert (await manifest(labs, "format=openai"))["left_out"] == {"tool_calls": 1}


async def test_openai_takes_the_message_at_which_they_part(labs: Client) -> None:
    await compare(labs, GOOD, BAD)
    [line] = await exported(labs, "format=openai")
    assert set(line) == {"input", "preferred_output", "non_preferred_output", "provenance"}
    assert line["input"] == {"messages": GOOD[:1], "tools": [], "parallel_tool_calls": True}
    assert line["preferred_output"] == GOOD[1:2]
    assert line["non_preferred_output"] == BAD[1:2]
    assert line["provenance"]["margin"] > 0


async def test_a_person_overrules_the_judge_and_doubles_are_left_out(labs: Client) -> None:
    compared = await compare(labs, GOOD, BAD)
    await compare(labs, BAD, GOOD)
    await labs.ok("POST", "/preferences", {"comparison_id": compared["comparison_id"], "winner": "b", "margin": 0.4})
    [line] = await exported(labs, "format=openrlhf")
    assert line["chosen"] == BAD[1:-1]
    assert (line["provenance"]["source"], line["margin"]) == ("label", 0.4)
    assert (await manifest(labs))["left_out"] == {"contradicts": 2}
    await label(labs, "b", margin=0.4)
    assert (await manifest(labs))["left_out"] == {"contradicts": 2, "duplicate": 1}
    assert (await manifest(labs, "source=compare"))["left_out"] == {"duplicate": 1}


async def test_what_is_no_pair_is_counted_with_its_reason(labs: Client) -> None:
    await label(labs, "tie")
    await label(labs, "a", GOOD, GOOD)
    await label(labs, "a", GOOD, FAIR[:2])
    await label(labs, "a", GOOD[1:], BAD[1:])
    await label(labs, "a", GOOD, [{"role": "user", "content": "Another beginning."}, *BAD[1:]])
    told = await manifest(labs)
    assert told["pairs"] == 0
    assert told["left_out"] == {"tie": 1, "same": 1, "one_goes_on": 1, "no_prompt": 1, "prompts_differ": 1}


async def test_groups_of_episodes_with_one_seed_are_paired_best_with_worst(labs: Client, house: House) -> None:
    good = await play(labs, house, ASKS, "I'm sorry to hear that. When do you need it back?")
    middle = await play(labs, house, ASKS)
    bad = await play(labs, house, PUSHES)
    await play(labs, house, PUSHES, seed=8)
    pairs = await exported(labs, "source=episodes")
    told = pairs[0]["provenance"]
    assert len(pairs) == 1
    assert (told["episode_id_chosen"], told["episode_id_rejected"]) == (good["episode_id"], bad["episode_id"])
    assert middle["episode_id"] not in json.dumps(pairs)
    assert (told["seed"], told["source"]) == (7, "episodes")
    assert pairs[0]["margin"] == round(told["reward_chosen"] - told["reward_rejected"], 4) > 0
    assert pairs[0]["prompt"] == [{"role": "user", "content": good["initial_observation"]["content"]}]
    assert pairs[0]["chosen"][0] == {"role": "assistant", "content": ASKS}
    assert pairs[0]["chosen"][-1]["role"] == "assistant"


async def test_an_export_can_be_narrowed_and_made_again(labs: Client, house: House) -> None:
    compared = await compare(labs, GOOD, BAD)
    margin = compared["margin"]
    assert len(await exported(labs, f"min_margin={margin}")) == 1
    assert await exported(labs, f"min_margin={margin + 0.01}") == []
    empty = await labs.call("GET", f"/preferences/export?min_margin={margin + 0.01}")
    assert empty.headers["x-labs-left-out"] == "margin=1"
    assert (await manifest(labs, "min_margin=1"))["left_out"] == {"margin": 1}
    nothing = await labs.call("GET", f"/preferences/export?collection_slug={OTHER['collection_slug']}")
    assert (nothing.content, nothing.headers["x-labs-left-out"]) == (b"", "none")
    assert nothing.headers["content-type"].startswith("application/jsonl")
    assert len(await exported(labs, f"collection_slug={COLLECTION}")) == 1
    first = await manifest(labs)
    house.clock.advance(timedelta(minutes=1))
    await compare(labs, FAIR + dialogue(PUSHES, opening=None), BAD)
    assert (await manifest(labs))["pairs"] == 2
    again = await manifest(labs, f"until={first['until']}")
    assert (again["sha256"], again["pairs"]) == (first["sha256"], 1)
    response = await labs.call("GET", f"/preferences/export?until={first['until']}")
    assert hashlib.sha256(response.content).hexdigest() == first["sha256"]
    assert len(response.content) == first["bytes"]
    early, late = "0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59"
    until = ("yesterday", "2026-01-01T00:00:00", early, late)
    for query in ("format=word", "min_margin=2", "source=dreams", *(f"until={moment}" for moment in until)):
        assert_error(await labs.call("GET", f"/preferences/export?{query}"), 400, "invalid_request")


@pytest.fixture
async def two(house: House) -> tuple[str, str]:
    return await house.key("acme"), await house.key("other", collections=[OTHER["collection_slug"]])


async def test_another_lab_sees_nothing_of_it(house: House, two: tuple[str, str]) -> None:
    house.end_development_mode()
    async with house.client(two[0]) as acme, house.client(two[1]) as other:
        compared = await compare(acme, GOOD, BAD)
        body = {"comparison_id": compared["comparison_id"], "winner": "a"}
        assert_error(await other.call("POST", "/preferences", body), 404, "comparison_not_found")
        await acme.ok("POST", "/preferences", body)
        assert (await other.ok("GET", "/preferences"))["data"] == []
        assert await exported(other) == []
        assert_error(await other.call("GET", f"/preferences/export?collection_slug={COLLECTION}"), 403, "forbidden")
        nowhere = {**body, "comparison_id": "cmp_" + "a" * 24}
        assert_error(await acme.call("POST", "/preferences", nowhere), 404, "comparison_not_found")


async def test_agreement_with_people_is_measured_on_labelled_comparisons(labs: Client) -> None:
    assert (await labs.ok("GET", "/preferences/agreement"))["labels"] == 0
    for number in range(8):
        compared = await compare(labs, GOOD, BAD)
        winner = "a" if number < 6 else "b"
        await labs.ok("POST", "/preferences", {"comparison_id": compared["comparison_id"], "winner": winner})
    await label(labs)
    found = await labs.ok("GET", "/preferences/agreement")
    assert (found["labels"], found["left_out"]) == (8, 1)
    assert (found["accuracy"]["value"], found["accuracy"]["n"], found["ties"]) == (0.75, 8, 0.0)
    assert found["accuracy"]["low"] < 0.75 < found["accuracy"]["high"]
    assert found["scoring_version"] == compared["scoring_version"]
    assert "alpha" not in found


async def test_people_are_measured_by_each_other_where_several_spoke(labs: Client) -> None:
    for number in range(8):
        compared = await compare(labs, GOOD, BAD)
        for labeller, winner in (("rater-1", "a" if number % 2 else "b"), ("rater-2", "a" if number % 2 else "b")):
            said = {"comparison_id": compared["comparison_id"], "winner": winner, "labeller": labeller}
            await labs.ok("POST", "/preferences", said)
    found = await labs.ok("GET", "/preferences/agreement")
    assert (found["alpha"]["value"], found["alpha"]["n"]) == (1.0, 8)
    assert found["kappa"]["value"] == 0.0
