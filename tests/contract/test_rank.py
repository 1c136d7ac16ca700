"""POST /rank: a group of conversations of one scenario, placed against each other."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from reward_server.errors import JudgeFailed
from tests.contract.house import OTHER, WHERE, Client, House, Json, assert_error
from tests.contract.test_evaluate import BAD, FAIR, GOOD, dialogue

pytestmark = pytest.mark.one_house

GROUP = {"good": GOOD, "fair": FAIR, "bad": BAD}


def body(group: dict[str, list[Json]] | None = None, **fields: Any) -> Json:
    responses = [{"id": name, "messages": messages} for name, messages in (group or GROUP).items()]
    return {**WHERE, "responses": responses, **fields}


def many(n: int) -> dict[str, list[Json]]:
    return {f"r{i}": dialogue(f"How did it happen, and is this question number {i}?") for i in range(n)}


async def test_a_ranking_has_the_documented_fields(labs: Client) -> None:
    result = await labs.ok("POST", "/rank", body())
    assert set(result) == {"results", "relative", "scoring_version", "metadata", "request_id"}
    assert result["relative"] is True
    assert result["scoring_version"].startswith("sv_")
    assert [set(member) for member in result["results"]] == [{"id", "score", "rank"}] * 3
    assert result["metadata"].keys() == {"scenario_name", "evaluation_time_ms", "judge"}
    assert result["metadata"]["judge"] == "local"
    assert result["metadata"]["scenario_name"] == "The flat tyre"


async def test_results_come_in_input_order_and_rank_1_is_best(labs: Client) -> None:
    result = await labs.ok("POST", "/rank", body({"bad": BAD, "good": GOOD, "fair": FAIR}))
    assert [member["id"] for member in result["results"]] == ["bad", "good", "fair"]
    assert [member["rank"] for member in result["results"]] == [3, 1, 2]


async def test_with_local_judges_a_score_is_the_reward_of_the_member(labs: Client) -> None:
    ranked = await labs.ok("POST", "/rank", body())
    for member in ranked["results"]:
        alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": GROUP[member["id"]]})
        assert member["score"] == alone["reward"]
        assert ranked["scoring_version"] == alone["scoring_version"]


async def test_the_order_of_the_input_changes_nothing(labs: Client) -> None:
    group = list((GROUP | {"twin": FAIR, "curt": dialogue("Hello."), "rude": dialogue("Shut up.")}).items())
    seen = set()
    for seed in range(6):
        random.Random(seed).shuffle(group)
        result = await labs.ok("POST", "/rank", body(dict(group)))
        seen.add(tuple(sorted((m["id"], m["score"], m["rank"]) for m in result["results"])))
    assert len(seen) == 1


async def test_equal_transcripts_score_equal_and_share_a_place(labs: Client) -> None:
    result = await labs.ok("POST", "/rank", body({"a": GOOD, "b": GOOD, "c": BAD, "d": FAIR}))
    places = {member["id"]: member["rank"] for member in result["results"]}
    scores = {member["id"]: member["score"] for member in result["results"]}
    assert scores["a"] == scores["b"]
    assert places == {"a": 1, "b": 1, "d": 3, "c": 4}


async def test_two_to_sixty_four_members(labs: Client) -> None:
    assert len((await labs.ok("POST", "/rank", body(many(2))))["results"]) == 2
    assert len((await labs.ok("POST", "/rank", body(many(64))))["results"]) == 64
    for n in (1, 65):
        assert_error(await labs.call("POST", "/rank", body(many(n))), 400, "invalid_request")
    assert_error(await labs.call("POST", "/rank", {**WHERE, "responses": []}), 400, "invalid_request")


async def test_ids_differ_and_are_short_texts(labs: Client) -> None:
    twice = [{"id": "a", "messages": GOOD}, {"id": "a", "messages": BAD}]
    for responses in (
        twice,
        [{"id": "", "messages": GOOD}, twice[0]],
        [{"id": "x" * 257, "messages": GOOD}, twice[0]],
        [{"id": 1, "messages": GOOD}, twice[0]],
        [{"messages": GOOD}, twice[0]],
        [{"id": "b", "messages": []}, twice[0]],
        [{"id": "b", "messages": GOOD, "reward": 1}, twice[0]],
    ):
        response = await labs.call("POST", "/rank", {**WHERE, "responses": responses})
        problems = assert_error(response, 400, "invalid_request")["errors"]
        assert problems[0]["loc"][0] == "responses"


async def test_a_member_that_cannot_be_scored_refuses_the_group_and_is_named(labs: Client) -> None:
    silent = [{"role": "user", "content": "Hello?"}]
    data = assert_error(await labs.call("POST", "/rank", body({"a": GOOD, "b": silent})), 400, "nothing_to_score")
    assert data["errors"][0]["loc"] == ["responses", 1, "messages"]
    odd = [{"role": "wizard", "content": "Hello?"}]
    data = assert_error(await labs.call("POST", "/rank", body({"a": odd, "b": GOOD})), 400, "invalid_request")
    assert data["errors"][0]["loc"] == ["responses", 0, "messages", 0, "role"]


async def test_agent_role_and_reward_config_are_those_of_evaluate(labs: Client) -> None:
    swapped = {
        name: [{**m, "role": {"user": "assistant", "assistant": "user"}[m["role"]]} for m in messages]
        for name, messages in GROUP.items()
    }
    plain = await labs.ok("POST", "/rank", body())
    turned = await labs.ok("POST", "/rank", body(swapped, agent_role="user"))
    assert turned["results"] == plain["results"]
    config = {"quality_weights": {"discovery": 1.0}}
    weighted = await labs.ok("POST", "/rank", body(reward_config=config))
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": FAIR, "reward_config": config})
    assert weighted["results"][1]["score"] == alone["reward"] != plain["results"][1]["score"]
    refused = await labs.call("POST", "/rank", body(reward_config={"quality_weights": {}}))
    assert_error(refused, 400, "invalid_reward_config")


@pytest.mark.parametrize("field", ["normalization_key", "items", "response_a"])
async def test_unknown_fields_are_refused(labs: Client, field: str) -> None:
    assert_error(await labs.call("POST", "/rank", {**body(), field: "x"}), 400, "invalid_request")


async def test_unknown_and_forbidden_scenarios(house: House) -> None:
    key = await house.key(collections=("bike-shop",))
    house.end_development_mode()
    async with house.client(key) as client:
        for where, status, code in (
            ({"collection_slug": "nowhere"}, 404, "collection_not_found"),
            ({"scenario_slug": "nowhere"}, 404, "scenario_not_found"),
            (OTHER, 403, "forbidden"),
        ):
            assert_error(await client.call("POST", "/rank", {**body(), **where}), status, code)
    async with house.client() as client:
        assert_error(await client.call("POST", "/rank", body()), 401, "unauthenticated")


async def test_a_failed_judge_fails_the_whole_group(house: House, labs: Client) -> None:
    house.failure = lambda request: JudgeFailed() if len(request.transcript.turns) == 1 else None
    response = await labs.call("POST", "/rank", body())
    assert_error(response, 502, "judge_failed")
    assert not any(word in response.text for word in ("score", "rank"))


async def test_a_retry_with_a_key_gets_the_stored_answer(house: House, labs: Client) -> None:
    headers = {"Idempotency-Key": "rank-1"}
    first = await labs.ok("POST", "/rank", body(), headers=headers)
    house.failure = lambda request: JudgeFailed()  # nothing is scored again
    again = await labs.ok("POST", "/rank", body(), headers=headers)
    assert {**again, "request_id": ""} == {**first, "request_id": ""}
    other = await labs.call("POST", "/rank", body({"a": GOOD, "b": BAD}), headers=headers)
    assert_error(other, 409, "idempotency_mismatch")


async def test_a_failure_is_not_kept_for_retries(house: House, labs: Client) -> None:
    headers = {"Idempotency-Key": "rank-2"}
    house.failure = lambda request: JudgeFailed()
    assert_error(await labs.call("POST", "/rank", body(), headers=headers), 502, "judge_failed")
    house.failure = lambda request: None
    assert (await labs.ok("POST", "/rank", body(), headers=headers))["results"][0]["rank"] == 1


async def test_one_group_is_scored_in_one_call_and_a_twin_only_once(house: House, labs: Client) -> None:
    await labs.ok("POST", "/rank", body({"a": GOOD, "b": GOOD, "c": BAD}))
    assert house.scored == [2]


async def test_many_groups_at_once_do_not_mix(labs: Client) -> None:
    groups = [{"good": GOOD, "bad": BAD}, {"fair": FAIR, "bad": BAD}] * 4
    answers = await asyncio.gather(*(labs.ok("POST", "/rank", body(group)) for group in groups))
    assert [[m["id"] for m in a["results"]] for a in answers] == [list(group) for group in groups]
    assert all([m["rank"] for m in a["results"]] == [1, 2] for a in answers)


async def test_ranking_stores_no_evaluation(labs: Client) -> None:
    """A relative score must not come back as a normalisation statistic."""
    key = {"normalization_key": "k", "normalization_windows": ["100n"]}
    await labs.ok("POST", "/rank", body())
    result = await labs.ok("POST", "/evaluate", {**WHERE, "messages": GOOD, **key})
    assert result["normalized"]["100n"]["n"] == 0
