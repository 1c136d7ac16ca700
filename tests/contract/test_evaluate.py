"""POST /evaluate, /batch/evaluate, /compare: rewards of finished conversations."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from statistics import fmean, pstdev
from typing import Any

import pytest

from reward_server.errors import JudgeFailed
from reward_server.scoring.request import ScoreRequest
from reward_server.transcripts.transcript import Transcript
from tests.contract.house import OTHER, WHERE, Client, House, Json, assert_error
from tests.store.builders import an_evaluation

pytestmark = pytest.mark.one_house


def dialogue(
    *lines: str, agent_role: str = "assistant", opening: str | None = "Hello, my bike has a flat tyre."
) -> list[Json]:
    """Persona and agent in turn; the persona begins unless there is no opening."""
    persona_role = "user" if agent_role == "assistant" else "assistant"
    messages = [{"role": persona_role, "content": opening}] if opening else []
    roles = [agent_role, persona_role]
    return messages + [{"role": roles[i % 2], "content": line} for i, line in enumerate(lines)]


GOOD = dialogue(
    "Good morning. How did it happen?",
    "I rode over broken glass behind the station.",
    "I'm sorry to hear that. When do you need it back?",
    "I need it on Saturday, there is a race around the lake.",
    "Then I will put in a new tube and have it ready on Friday.",
    "A new tube sounds right to me.",
)
FAIR = GOOD[:3]
BAD = dialogue("You should buy a new bike instead.", "I came for a repair.")


def body(messages: list[Json] = GOOD, **fields: Any) -> Json:
    return {**WHERE, "messages": messages, **fields}


# --- /evaluate ------------------------------------------------------------------------------------


async def test_an_evaluation_has_the_documented_fields(labs: Client) -> None:
    result = await labs.ok("POST", "/evaluate", body())
    assert set(result) == {"evaluation_id", "reward", "scores", "scoring_version", "metadata", "request_id"}
    assert result["evaluation_id"].startswith("ev_")
    assert result["scoring_version"].startswith("sv_")
    assert set(result["metadata"]) == {"scenario_name", "evaluation_time_ms", "judge"}
    assert result["metadata"]["scenario_name"] == "The flat tyre"
    assert result["metadata"]["evaluation_time_ms"] >= 0
    assert set(result["scores"]) == {"D1_InformationGathering", "D2_GoalProgress"}


async def test_better_conversations_have_better_rewards(labs: Client) -> None:
    rewards = [(await labs.ok("POST", "/evaluate", body(m)))["reward"] for m in (GOOD, FAIR, BAD)]
    assert 1 >= rewards[0] > rewards[1] > rewards[2] >= 0


async def test_the_same_transcript_has_the_same_reward(labs: Client) -> None:
    results = [await labs.ok("POST", "/evaluate", body()) for _ in range(3)]
    assert len({(r["reward"], r["scoring_version"]) for r in results}) == 1
    assert len({r["evaluation_id"] for r in results}) == 3


async def test_agent_messages_are_those_of_the_agent_role(labs: Client) -> None:
    swapped = [{**m, "role": {"user": "assistant", "assistant": "user"}[m["role"]]} for m in GOOD]
    plain = await labs.ok("POST", "/evaluate", body())
    turned = await labs.ok("POST", "/evaluate", body(swapped, agent_role="user"))
    wrong = await labs.ok("POST", "/evaluate", body(swapped))
    assert turned["reward"] == plain["reward"] > wrong["reward"]


async def test_system_messages_do_not_count(labs: Client) -> None:
    system = [{"role": "system", "content": "Ask how it happened and when it is needed."}]
    plain = await labs.ok("POST", "/evaluate", body())
    assert (await labs.ok("POST", "/evaluate", body(system + GOOD)))["reward"] == plain["reward"]


@pytest.mark.parametrize("messages", [dialogue(), [{"role": "system", "content": "Hi"}], dialogue()[:1] * 3])
async def test_without_an_agent_message_there_is_nothing_to_score(labs: Client, messages: list[Json]) -> None:
    assert_error(await labs.call("POST", "/evaluate", body(messages)), 400, "nothing_to_score")


async def test_what_the_agent_says_the_persona_did_not_earns_nothing(labs: Client) -> None:
    told = dialogue("You rode over broken glass behind the station and need it on Saturday for the race, right?", "Hm.")
    unasked = dialogue("I see.", "I rode over broken glass behind the station.", "OK.", "I need it on Saturday.")
    for messages in (told, unasked):
        assert (await labs.ok("POST", "/evaluate", body(messages)))["scores"]["D1_InformationGathering"] == 0


@pytest.mark.parametrize("role", ["system", "persona", "", None, 1])
async def test_the_agent_role_is_assistant_or_user(labs: Client, role: object) -> None:
    assert_error(await labs.call("POST", "/evaluate", body(agent_role=role)), 400, "invalid_request")


async def test_the_breakdown_is_for_keys_with_full_score_access(house: House) -> None:
    headers = {"Idempotency-Key": "k1"}
    async with house.client(await house.key(full_scores=True)) as full, house.client(await house.key()) as plain:
        whole = await full.ok("POST", "/evaluate", body(), headers=headers)
        part = await plain.ok("POST", "/evaluate", body(), headers=headers)
        batch = await plain.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **body()}]})
        open_batch = await full.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **body()}]})
    assert set(whole["score_breakdown"]) == set(whole["scores"])
    assert all(isinstance(text, str) for text in whole["score_breakdown"].values())
    assert part["evaluation_id"] == whole["evaluation_id"]
    assert "score_breakdown" not in part
    assert "score_breakdown" not in batch["results"][0]
    assert open_batch["results"][0]["score_breakdown"] == whole["score_breakdown"]


async def test_what_capped_a_reward_is_for_keys_with_full_score_access(house: House) -> None:
    wrong = [*GOOD, {"role": "assistant", "content": "You should buy a new bike instead."}]
    rude = body(wrong)
    async with house.client(await house.key(full_scores=True)) as full, house.client(await house.key()) as plain:
        assert (await full.ok("POST", "/evaluate", rude))["capped_by"] == ["failure_criterion"]
        assert (await full.ok("POST", "/evaluate", body()))["capped_by"] == []
        assert "capped_by" not in await plain.ok("POST", "/evaluate", rude)


# --- stored answers -------------------------------------------------------------------------------


async def test_an_evaluation_can_be_had_again(house: House) -> None:
    async with house.client(await house.key(full_scores=True)) as full, house.client(await house.key()) as plain:
        told = await full.ok("POST", "/evaluate", body(normalization_key="k", normalization_windows=["5n"]))
        again = await full.ok("GET", f"/evaluations/{told['evaluation_id']}")
        part = await plain.ok("GET", f"/evaluations/{told['evaluation_id']}")
        item = (await full.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **body()}]}))["results"][0]
        of_a_batch = await full.ok("GET", f"/evaluations/{item['evaluation_id']}")
    assert {name: again[name] for name in told if name != "request_id"} == _without_id(told)
    assert (again["source"], again["scenario_slug"]) == ("evaluate", WHERE["scenario_slug"])
    assert set(again) - set(part) == {"score_breakdown", "capped_by"}
    assert of_a_batch["source"] == "batch"
    assert {name: of_a_batch[name] for name in item if name in of_a_batch} == _without(item, "id", "status")


async def test_an_evaluation_is_its_labs_alone(house: House) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("other")) as other:
        told = await acme.ok("POST", "/evaluate", body())
        for asking, name in ((other, told["evaluation_id"]), (acme, "ev_" + "a" * 24), (acme, "ep_1")):
            assert_error(await asking.call("GET", f"/evaluations/{name}"), 404, "evaluation_not_found")
    async with house.client(await house.key("acme", collections=("front-desk",))) as elsewhere:
        assert_error(await elsewhere.call("GET", f"/evaluations/{told['evaluation_id']}"), 403, "forbidden")


async def test_an_evaluation_of_an_older_version_has_what_its_row_knows(house: House, labs: Client) -> None:
    row = an_evaluation(lab_id="development", collection=WHERE["collection_slug"], scenario=WHERE["scenario_slug"])
    async with house.store.transaction() as unit:
        await unit.evaluations.add_many([row])
    again = await labs.ok("GET", f"/evaluations/{row.evaluation_id}")
    assert (again["reward"], again["scores"], again["scoring_version"]) == (0.5, row.scores, row.scoring_version)
    assert "metadata" not in again


def _without_id(told: Json) -> Json:
    return _without(told, "request_id")


def _without(told: Json, *names: str) -> Json:
    return {name: value for name, value in told.items() if name not in names}


# --- reward_config --------------------------------------------------------------------------------


async def test_given_weights_replace_the_default(labs: Client) -> None:
    async def reward(**weights: float) -> float:
        config = {"quality_weights": weights}
        return float((await labs.ok("POST", "/evaluate", body(reward_config=config)))["reward"])

    plain = (await labs.ok("POST", "/evaluate", body()))["reward"]
    assert await reward(discovery=1) == 1
    assert await reward(decision_match=1) == 0
    assert await reward(discovery=0.5) == await reward(discovery=3)
    everything = dict.fromkeys(
        (
            "success_metrics",
            "failure_metrics",
            "best_practices",
            "rubrics",
            "discovery",
            "output_similarity",
            "decision_match",
        ),
        1,
    )
    assert await reward(**everything) == plain


async def test_an_empty_reward_config_is_the_default(labs: Client) -> None:
    plain = (await labs.ok("POST", "/evaluate", body()))["reward"]
    for config in (None, {}, {"skip_safety_gate": False}):
        assert (await labs.ok("POST", "/evaluate", body(reward_config=config)))["reward"] == plain


@pytest.mark.parametrize(
    "config",
    [
        {"quality_weights": {}},
        {"quality_weights": {"discovery": 0, "rubrics": 0.0}},
        {"quality_weights": {"discovery": -0.1}},
        {"quality_weights": {"charm": 1}},
        {"quality_weights": {"discovery": "much"}},
        {"quality_weights": [1]},
        {"quality_weights": 1},
        {"skip_safety_gate": "yes"},
        {"weights": {}},
        [],
        "default",
    ],
)
@pytest.mark.parametrize("door", ["/evaluate", "/compare"])
async def test_a_bad_reward_config_is_400(labs: Client, config: object, door: str) -> None:
    request = body(reward_config=config)
    if door == "/compare":
        request = comparison(GOOD, BAD, reward_config=config)
    assert_error(await labs.call("POST", door, request), 400, "invalid_reward_config")


# --- normalisation --------------------------------------------------------------------------------


async def test_windows_hold_earlier_rewards_only(labs: Client, house: House) -> None:
    asked = {"normalization_key": "run-1", "normalization_windows": ["7d", "100n", "1n"]}
    rewards: list[float] = []
    for messages in (GOOD, BAD, FAIR, GOOD):
        result = await labs.ok("POST", "/evaluate", body(messages, **asked))
        assert set(result["normalized"]) == {"7d", "100n", "1n"}
        window = result["normalized"]["7d"]
        assert window == result["normalized"]["100n"]
        assert set(window) == {"z", "mean", "std", "n"}
        assert window["n"] == len(rewards)
        if len(rewards) < 2:
            assert window["z"] is None
        else:
            assert window["mean"] == pytest.approx(fmean(rewards))
            assert window["std"] == pytest.approx(pstdev(rewards))
            assert window["z"] == pytest.approx((result["reward"] - fmean(rewards)) / pstdev(rewards))
        if rewards:
            assert result["normalized"]["1n"] == {"z": None, "mean": rewards[-1], "std": 0, "n": 1}
        rewards.append(result["reward"])
        house.clock.advance(timedelta(seconds=1))


async def test_z_is_null_when_all_are_equal(labs: Client) -> None:
    asked = {"normalization_key": "run-1", "normalization_windows": ["10n"]}
    for _ in range(3):
        result = await labs.ok("POST", "/evaluate", body(**asked))
    assert result["normalized"]["10n"]["n"] == 2
    assert result["normalized"]["10n"]["z"] is None


async def test_windows_look_back_as_far_as_they_say(labs: Client, house: House) -> None:
    await labs.ok("POST", "/evaluate", body(normalization_key="k"))
    house.clock.advance(timedelta(days=10))
    asked = {"normalization_key": "k", "normalization_windows": ["9d", "11d", "1w", "2w", "1m"]}
    windows = (await labs.ok("POST", "/evaluate", body(**asked)))["normalized"]
    assert {spec: window["n"] for spec, window in windows.items()} == {"9d": 0, "11d": 1, "1w": 0, "2w": 1, "1m": 1}


async def test_keys_and_labs_have_windows_of_their_own(house: House) -> None:
    asked = {"normalization_windows": ["9n"]}
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("globex")) as globex:
        await acme.ok("POST", "/evaluate", body(normalization_key="k", **asked))
        for client, key, n in ((acme, "k", 1), (acme, "other", 0), (globex, "k", 0)):
            result = await client.ok("POST", "/evaluate", body(normalization_key=key, **asked))
            assert result["normalized"]["9n"]["n"] == n


async def test_normalized_is_there_only_if_windows_were_asked_for(labs: Client) -> None:
    for asked in ({}, {"normalization_key": "k"}, {"normalization_key": "k", "normalization_windows": []}):
        assert "normalized" not in await labs.ok("POST", "/evaluate", body(**asked))


@pytest.mark.parametrize("window", ["0d", "0n", "1d", "7w", "12m", "100n", "9" * 255 + "d", "007d"])
async def test_windows_of_any_length_are_fine(labs: Client, window: str) -> None:
    asked = {"normalization_key": "k", "normalization_windows": [window]}
    assert (await labs.ok("POST", "/evaluate", body(**asked)))["normalized"][window]["n"] == 0


@pytest.mark.parametrize(
    "windows",
    [
        ["7"],
        ["d"],
        ["7y"],
        ["-1d"],
        ["7D"],
        ["7d "],
        [" 7d"],
        ["7d\n"],
        [""],
        [7],
        ["1d", "2d", "3d", "4d", "5d", "6d"],
        "7d",
    ],
)
async def test_malformed_windows_are_400(labs: Client, windows: object) -> None:
    asked = {"normalization_key": "k", "normalization_windows": windows}
    assert_error(await labs.call("POST", "/evaluate", body(**asked)), 400, "invalid_request")


async def test_windows_need_the_key(labs: Client) -> None:
    response = await labs.call("POST", "/evaluate", body(normalization_windows=["7d"]))
    assert_error(response, 400, "invalid_request")


# --- /batch/evaluate ------------------------------------------------------------------------------


def items(*messages: list[Json], **fields: Any) -> list[Json]:
    return [{"id": f"item-{i}", **body(m, **fields)} for i, m in enumerate(messages)]


async def test_a_batch_has_the_documented_fields(labs: Client) -> None:
    result = await labs.ok("POST", "/batch/evaluate", {"items": items(GOOD, BAD)})
    assert set(result) == {"results", "scoring_version", "total_time_ms", "request_id"}
    for found in result["results"]:
        assert set(found) == {"id", "status", "evaluation_id", "reward", "scores", "scoring_version", "metadata"}
        assert found["status"] == "success"


async def test_an_item_scores_exactly_what_evaluate_gives_it(labs: Client, house: House) -> None:
    alone = [await labs.ok("POST", "/evaluate", body(m)) for m in (GOOD, FAIR, BAD)]
    house.scored.clear()
    for order in ((0, 1, 2), (2, 0, 1)):
        messages = [(GOOD, FAIR, BAD)[i] for i in order]
        batch = await labs.ok("POST", "/batch/evaluate", {"items": items(*messages)})
        assert [found["id"] for found in batch["results"]] == ["item-0", "item-1", "item-2"]
        assert [(f["reward"], f["scores"]) for f in batch["results"]] == [
            (alone[i]["reward"], alone[i]["scores"]) for i in order
        ]
        assert batch["scoring_version"] == alone[0]["scoring_version"]
    assert house.scored == [3, 3]


async def test_a_bad_item_fails_alone_and_has_no_reward(labs: Client) -> None:
    bad: list[Json] = [
        {"id": "role", **body([{"role": "bot", "content": "Hi"}])},
        {"id": "empty", **body([])},
        {"id": "fields"},
        {"id": "extra", **body(), "colour": 1},
        {"id": "collection", **body(), "collection_slug": "unknown"},
        {"id": "scenario", **body(), "scenario_slug": "unknown"},
        {"id": "silent", **body(dialogue())},
        {"id": "weights", **body(reward_config={"quality_weights": {}})},
        {"id": "windows", **body(normalization_windows=["7d"])},
        {"id": "long", **body([{"role": "assistant", "content": "x" * 10_001}])},
    ]
    batch = await labs.ok("POST", "/batch/evaluate", {"items": [{"id": "good", **body()}, *bad]})
    good, *failed = batch["results"]
    assert good["status"] == "success"
    codes = {found["id"]: found["code"] for found in failed}
    assert codes == {
        "role": "invalid_request",
        "empty": "invalid_request",
        "fields": "invalid_request",
        "extra": "invalid_request",
        "collection": "collection_not_found",
        "scenario": "scenario_not_found",
        "silent": "nothing_to_score",
        "weights": "invalid_reward_config",
        "windows": "invalid_request",
        "long": "invalid_request",
    }
    for found in failed:
        assert set(found) == {"id", "status", "message", "code"}
        assert found["status"] == "error"
        assert found["message"]


async def test_a_judge_that_fails_on_an_item_gives_it_no_number(labs: Client, house: House) -> None:
    def failure(request: ScoreRequest) -> JudgeFailed | None:
        return JudgeFailed() if len(request.transcript.turns) == 1 else None

    house.failure = failure
    batch = await labs.ok("POST", "/batch/evaluate", {"items": items(GOOD, BAD, GOOD)})
    assert [found["status"] for found in batch["results"]] == ["success", "error", "success"]
    assert batch["results"][1]["code"] == "judge_failed"
    assert "reward" not in batch["results"][1]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"items": []},
        {"items": None},
        {"items": {}},
        {"items": "x"},
        {"items": items(*[BAD] * 101)},
        {"items": [7]},
        {"items": [None]},
        {"items": [[]]},
        {"items": [body()]},
        {"items": [{**body(), "id": 7}]},
        {"items": [{**body(), "id": ""}]},
        {"items": [{**body(), "id": None}]},
        {"items": [{**body(), "id": "x" * 257}]},
        {"items": [{**body(), "id": "a"}, {**body(), "id": "a"}]},
        {"items": [{"id": "a"}, {"id": "a"}]},
        {"items": items(GOOD), "agent_role": "user"},
        [],
        None,
        7,
    ],
)
async def test_what_is_no_batch_is_400(labs: Client, content: object) -> None:
    headers = {"Content-Type": "application/json"}
    response = await labs.call("POST", "/batch/evaluate", content=json.dumps(content).encode(), headers=headers)
    assert_error(response, 400, "invalid_request")


async def test_a_batch_of_100_is_fine(labs: Client) -> None:
    batch = await labs.ok("POST", "/batch/evaluate", {"items": items(*[BAD, FAIR] * 50)})
    assert len({found["reward"] for found in batch["results"]}) == 2
    assert len(batch["results"]) == 100


async def test_items_of_several_collections_go_together(labs: Client) -> None:
    both = [{"id": "a", **body()}, {"id": "b", **OTHER, "messages": GOOD}]
    batch = await labs.ok("POST", "/batch/evaluate", {"items": both})
    assert [found["metadata"]["scenario_name"] for found in batch["results"]] == ["The flat tyre", "The lost key"]


async def test_windows_of_a_batch_are_read_before_it(labs: Client) -> None:
    asked = {"normalization_key": "k", "normalization_windows": ["50n"]}
    for expected in (0, 3):
        batch = await labs.ok("POST", "/batch/evaluate", {"items": items(GOOD, FAIR, BAD, **asked)})
        assert [found["normalized"]["50n"]["n"] for found in batch["results"]] == [expected] * 3
    single = await labs.ok("POST", "/evaluate", body(**asked))
    assert single["normalized"]["50n"]["n"] == 6


async def test_the_last_n_of_a_batch_are_its_last_items(labs: Client) -> None:
    keyed = {"normalization_key": "k"}
    batch = await labs.ok("POST", "/batch/evaluate", {"items": items(*[GOOD, FAIR] * 20, BAD, BAD, **keyed)})
    assert batch["results"][-1]["reward"] == 0
    window = (await labs.ok("POST", "/evaluate", body(**keyed, normalization_windows=["2n"])))["normalized"]["2n"]
    assert (window["n"], window["mean"]) == (2, 0)


async def test_doors_at_the_same_time_agree(labs: Client) -> None:
    single = [labs.ok("POST", "/evaluate", body(m)) for m in (GOOD, FAIR, BAD)]
    batch = labs.ok("POST", "/batch/evaluate", {"items": items(GOOD, FAIR, BAD)})
    *alone, together = await asyncio.gather(*single, batch)
    assert [found["reward"] for found in together["results"]] == [found["reward"] for found in alone]


# --- /compare -------------------------------------------------------------------------------------


def comparison(a: list[Json], b: list[Json], **fields: Any) -> Json:
    return {**WHERE, "response_a": {"messages": a}, "response_b": {"messages": b}, **fields}


async def test_a_comparison_has_the_documented_fields(labs: Client) -> None:
    result = await labs.ok("POST", "/compare", comparison(GOOD, BAD))
    assert set(result) == {
        "winner",
        "reward_a",
        "reward_b",
        "margin",
        "scores_a",
        "scores_b",
        "scoring_version",
        "comparison_id",
        "request_id",
    }
    assert result["winner"] == "a"
    assert result["margin"] == round(result["reward_a"] - result["reward_b"], 4) > 0
    assert result["comparison_id"].startswith("cmp_")


async def test_swapping_swaps_the_winner_and_nothing_else(labs: Client) -> None:
    there = await labs.ok("POST", "/compare", comparison(GOOD, FAIR))
    back = await labs.ok("POST", "/compare", comparison(FAIR, GOOD))
    assert (there["winner"], back["winner"]) == ("a", "b")
    assert there["margin"] == back["margin"]
    for one, other in (("a", "b"), ("b", "a")):
        assert there[f"reward_{one}"] == back[f"reward_{other}"]
        assert there[f"scores_{one}"] == back[f"scores_{other}"]


@pytest.mark.parametrize("messages", [GOOD, FAIR, BAD])
async def test_equal_transcripts_tie(labs: Client, messages: list[Json]) -> None:
    result = await labs.ok("POST", "/compare", comparison(messages, messages))
    assert (result["winner"], result["margin"]) == ("tie", 0)
    assert result["reward_a"] == result["reward_b"]


async def test_a_side_scores_what_evaluate_gives_it(labs: Client) -> None:
    result = await labs.ok("POST", "/compare", comparison(GOOD, BAD))
    assert result["reward_a"] == (await labs.ok("POST", "/evaluate", body(GOOD)))["reward"]
    assert result["reward_b"] == (await labs.ok("POST", "/evaluate", body(BAD)))["reward"]


@pytest.mark.parametrize("side", ["response_a", "response_b"])
async def test_a_side_with_nothing_to_score_is_400(labs: Client, side: str) -> None:
    request = comparison(GOOD, BAD) | {side: {"messages": dialogue()}}
    data = assert_error(await labs.call("POST", "/compare", request), 400, "nothing_to_score")
    assert [error["loc"] for error in data["errors"]] == [[side, "messages"]]


async def test_a_failing_judge_names_no_winner(labs: Client, house: House) -> None:
    house.failure = lambda request: JudgeFailed() if len(request.transcript.turns) == 1 else None
    response = await labs.call("POST", "/compare", comparison(GOOD, BAD))
    assert_error(response, 502, "judge_failed")
    assert "winner" not in response.text


@pytest.mark.parametrize("change", [{"scenario_slug": "unknown"}, {"collection_slug": "unknown"}])
@pytest.mark.parametrize("door", ["/evaluate", "/compare"])
async def test_unknown_things_are_404(labs: Client, change: Json, door: str) -> None:
    request = (body() if door == "/evaluate" else comparison(GOOD, BAD)) | change
    response = await labs.call("POST", door, request)
    assert_error(response, 404, f"{next(iter(change)).removesuffix('_slug')}_not_found")


async def test_an_evaluation_reads_its_conversation_once(labs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Transcript.from_messages

    def counted(*given: Any) -> Transcript:
        read.append("read")
        return real(*given)

    monkeypatch.setattr(Transcript, "from_messages", counted)
    messages = dialogue("How did it happen?")
    await labs.ok("POST", "/evaluate", {**WHERE, "messages": messages})
    assert read == ["read"]
    items = [{"id": name, **WHERE, "messages": messages} for name in "ab"]
    await labs.ok("POST", "/batch/evaluate", {"items": items})
    assert read == ["read"] * 3
