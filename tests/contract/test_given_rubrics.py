"""A rubric in the body: any conversation is judged by it, through every call that scores finished conversations."""

from __future__ import annotations

from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import Scope
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house
from tests.rubrics.talks import EMPTY, JUDGED, LOGS, ORDER, PROMISE, RUBRIC

pytestmark = pytest.mark.one_house


def items() -> list[Json]:
    return [{"id": name, "rubric": RUBRIC, "messages": talk} for name, talk in LOGS.items()]


async def test_logs_come_out_in_order_and_empty_talk_does_not_win(labs: Client) -> None:
    result = await labs.ok("POST", "/batch/evaluate", {"items": items()})
    rewards = {each["id"]: each["reward"] for each in result["results"]}
    assert [rewards[name] for name in ORDER] == sorted((rewards[name] for name in ORDER), reverse=True)
    assert len({rewards[name] for name in ORDER}) == len(ORDER)
    assert rewards["excellent"] > 0.9
    assert all(rewards[name] < rewards["fair"] and rewards[name] <= 0.1 for name in EMPTY)


async def test_a_cap_holds(labs: Client) -> None:
    result = await labs.ok("POST", "/evaluate", {"rubric": RUBRIC, "messages": PROMISE})
    assert result["reward"] == 0.3
    assert result["capped_by"] == ["failure_criterion"]
    sides = {"response_a": {"messages": LOGS["good"]}, "response_b": {"messages": PROMISE}}
    compared = await labs.ok("POST", "/compare", {"rubric": RUBRIC, **sides})
    assert compared["capped_by_b"] == ["failure_criterion"]
    assert "capped_by_a" not in compared


async def test_caps_of_a_comparison_are_for_keys_with_full_scores(house: House) -> None:
    sides = {"response_a": {"messages": PROMISE}, "response_b": {"messages": LOGS["good"]}}
    for full in (False, True):
        key = await house.key(scopes=[Scope.SCORE, Scope.AUTHOR], full_scores=full)
        async with house.client(key) as scorer:
            compared = await scorer.ok("POST", "/compare", {"rubric": RUBRIC, **sides})
        caps = {name: compared.get(name) for name in ("capped_by_a", "capped_by_b")}
        assert caps == ({"capped_by_a": ["failure_criterion"], "capped_by_b": []} if full else dict.fromkeys(caps))


async def test_every_call_gives_the_same_reward(labs: Client) -> None:
    alone = await labs.ok("POST", "/evaluate", {"rubric": RUBRIC, "messages": LOGS["good"]})
    batch = await labs.ok("POST", "/batch/evaluate", {"items": items()})
    sides = {"response_a": {"messages": LOGS["good"]}, "response_b": {"messages": LOGS["poor"]}}
    compared = await labs.ok("POST", "/compare", {"rubric": RUBRIC, **sides})
    members = [{"id": name, "messages": talk} for name, talk in LOGS.items()]
    ranked = await labs.ok("POST", "/rank", {"rubric": RUBRIC, "responses": members})
    assert alone["reward"] == next(each["reward"] for each in batch["results"] if each["id"] == "good")
    assert alone["reward"] == compared["reward_a"]
    assert alone["reward"] == next(each["score"] for each in ranked["results"] if each["id"] == "good")
    assert compared["winner"] == "a"
    assert alone["scoring_version"] == compared["scoring_version"] == ranked["scoring_version"]
    assert alone["metadata"]["undecided"] == []


async def test_the_scoring_version_follows_the_rubric(labs: Client) -> None:
    body = {"messages": LOGS["good"]}
    first = await labs.ok("POST", "/evaluate", {"rubric": RUBRIC, **body})
    again = await labs.ok("POST", "/evaluate", {"rubric": dict(reversed(RUBRIC.items())), **body})
    other = await labs.ok("POST", "/evaluate", {"rubric": {**RUBRIC, "version": 2}, **body})
    assert first["scoring_version"] == again["scoring_version"] != other["scoring_version"]


async def test_what_nobody_can_decide_is_said_and_never_a_number(labs: Client) -> None:
    response = await labs.call("POST", "/evaluate", {"rubric": JUDGED, "messages": LOGS["good"]})
    assert_error(response, 502, "judge_failed")
    assert all(f"`{criterion['id']}`" in response.json()["message"] for criterion in JUDGED["criteria"])
    assert "docs/providers.md" in response.json()["message"]

    mixed = {
        **JUDGED,
        "criteria": [*JUDGED["criteria"][:1], *({**RUBRIC["criteria"][1], "points": 9, "dimension": "D1_Quality"},)],
    }
    result = await labs.ok("POST", "/evaluate", {"rubric": mixed, "messages": LOGS["good"]})
    assert result["metadata"]["undecided"] == ["asks_about_brake"]
    assert result["reward"] == 1.0


async def test_a_stored_evaluation_can_be_read_and_holds_no_rubric(labs: Client) -> None:
    made = await labs.ok("POST", "/evaluate", {"rubric": RUBRIC, "messages": LOGS["good"]})
    kept = await labs.ok("GET", f"/evaluations/{made['evaluation_id']}")
    assert kept["collection_slug"] == "rubric"
    assert kept["reward"] == made["reward"]
    assert "keeps_them_safe" not in str(kept)


async def test_after_a_restart_its_criteria_wait_for_the_rubric(data: Path, matcher: Matcher, library: Library) -> None:
    body = {"rubric": RUBRIC, "messages": LOGS["good"]}
    async with running_house(data, matcher, library) as house, house.client() as labs:
        made = await labs.ok("POST", "/evaluate", body)
    asked = f"/criterion-labels/criteria?conversation_id={made['evaluation_id']}"
    async with running_house(data, matcher, library) as house, house.client() as labs:
        response = await labs.call("GET", asked)
        assert_error(response, 404, "not_found")
        assert "the same rubric" in response.json()["message"]
        await labs.ok("POST", "/evaluate", body)
        assert len((await labs.ok("GET", asked))["data"]) == len(RUBRIC["criteria"])


async def test_it_takes_the_scope_author(house: House) -> None:
    key = await house.key(scopes=[Scope.SCORE])
    async with house.client(key) as scorer:
        body = {"rubric": RUBRIC, "messages": LOGS["good"]}
        response = await scorer.call("POST", "/evaluate", body)
        assert_error(response, 403, "insufficient_scope")
        assert "`author`" in response.json()["message"]
        batch = await scorer.ok("POST", "/batch/evaluate", {"items": items()[:1]})
        assert batch["results"][0]["code"] == "insufficient_scope"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"criteria": []}, "needs at least 1 entries"),
        ({"criteria": [{"id": "a", "check": {"elicited": {"facts": ["x"]}}}]}, "needs a persona"),
        ({"criteria": [{"id": "a", "given": ["x"], "check": {"regex": {"pattern": "x"}}}]}, "has no facts"),
        ({"criteria": [{"id": "a", "check": {"regex": {"pattern": "(?=x)y"}}}]}, "RE2"),
        ({"criteria": [{"id": "a", "check": {"regex": {"pattern": r"((\w{1,90}){1,90}){1,9}"}}}]}, "RE2"),
        ({"criteria": [{"id": "a", "check": {"plugin": {"name": "x"}}}]}, "runs this server"),
        ({"unknown": 1}, "unknown key"),
        ({"reward": {"combine": "min", "parts": [{"judge": "nobody"}]}}, "nobody"),
    ],
)
async def test_what_is_wrong_with_a_rubric_is_said(labs: Client, change: Json, said: str) -> None:
    base = {name: value for name, value in RUBRIC.items() if name != "dimensions"} if "criteria" in change else RUBRIC
    response = await labs.call("POST", "/evaluate", {"rubric": {**base, **change}, "messages": LOGS["good"]})
    assert response.status_code == 400
    assert said in response.text


async def test_each_mistake_in_a_rubric_has_its_place(labs: Client) -> None:
    first, second, *others = RUBRIC["criteria"]
    plugin = {"id": "a", "dimension": "D1_Finding", "check": {"plugin": {"name": "x"}}}
    wrong = {
        **RUBRIC,
        "dimensions": [{"name": "D1_Finding", "weigth": 0.5}, RUBRIC["dimensions"][1]],
        "criteria": [first, {**second, "pionts": 3}, *others],
    }
    response = await labs.call("POST", "/evaluate", {"rubric": wrong, "messages": LOGS["good"]})
    problems = {tuple(each["loc"]): each["msg"] for each in response.json()["data"]["errors"]}
    assert "did you mean `weight`?" in problems["rubric", "dimensions", 0, "weigth"]
    assert "did you mean `points`?" in problems["rubric", "criteria", 1, "pionts"]

    for criteria, place in (
        ([first, first, *others], ["rubric", "criteria", 1, "id"]),
        ([first, *others, plugin], ["rubric", "criteria", 1 + len(others), "check", "plugin"]),
    ):
        response = await labs.call(
            "POST", "/evaluate", {"rubric": {**RUBRIC, "criteria": criteria}, "messages": PROMISE}
        )
        assert place in [each["loc"] for each in response.json()["data"]["errors"]]


async def test_a_request_names_a_scenario_or_brings_a_rubric(labs: Client) -> None:
    both = await labs.call("POST", "/evaluate", {**WHERE, "rubric": RUBRIC, "messages": LOGS["good"]})
    assert_error(both, 400, "invalid_request")
    neither = await labs.call("POST", "/evaluate", {"messages": LOGS["good"]})
    assert "collection_slug" in str(assert_error(neither, 400, "invalid_request"))
    named = await labs.call(
        "POST", "/evaluate", {"collection_slug": "rubric", "scenario_slug": "given", "messages": LOGS["good"]}
    )
    assert_error(named, 404, "collection_not_found")


async def test_no_log_and_no_metric_holds_a_rubric(house: House, labs: Client) -> None:
    await labs.ok("POST", "/evaluate", {"rubric": RUBRIC, "messages": LOGS["good"]})
    await labs.call("POST", "/evaluate", {"rubric": JUDGED, "messages": LOGS["good"]})
    page = (await labs.call("GET", "/metrics")).text
    for text in (house.logs.getvalue(), page):
        assert "keeps_them_safe" not in text
        assert "until we have looked at the brakes" not in text
        assert "asks_about_brake" not in text
        assert "given-" not in page
