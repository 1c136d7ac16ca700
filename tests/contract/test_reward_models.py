"""GET /reward-models and POST /reward-models/{id}/activate: what learned models there are, and which one serves."""

from __future__ import annotations

import pytest

from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.model_shop import COMPOSITE, Shop
from tests.contract.test_evaluate import BAD, GOOD, body

pytestmark = pytest.mark.usefixtures("one_encoder")


async def rewarded(labs: Client, messages: list[Json] = GOOD) -> Json:
    return await labs.ok("POST", "/evaluate", body(messages, reward_config=COMPOSITE))


async def test_without_models_the_list_is_empty(labs: Client) -> None:
    assert (await labs.ok("GET", "/reward-models"))["reward_models"] == []


async def test_models_are_listed_with_data_hash_and_held_out_figures(labs: Client, shop: Shop) -> None:
    older, newer = shop.add(0.1), shop.add(0.7)
    shop.registry.activate(older)
    found = (await labs.ok("GET", "/reward-models"))["reward_models"]
    assert [model["id"] for model in found] == [newer, older]
    assert [model["active"] for model in found] == [False, True]
    assert found[1]["data_hash"] == "0" * 64
    assert found[1]["held_out"] == {"score": {"n": 12, "r2": {"value": 0.5, "low": 0.3, "high": 0.7}}}
    assert (found[1]["labelled"], found[1]["pairs"], found[1]["heads"]) == (60, 3, ["score"])
    assert found[1]["created_at"] == "2026-01-02T03:10:05Z"


async def test_an_activated_model_serves_at_once_and_changes_the_scoring_version(labs: Client, shop: Shop) -> None:
    first, second = shop.add(0.3), shop.add(0.6)
    plain = await labs.ok("POST", "/evaluate", body())
    assert (await labs.ok("POST", f"/reward-models/{first}/activate"))["active"] is True
    with_first = await rewarded(labs)
    assert with_first["reward"] == 0.3
    assert with_first["scoring_version"] != plain["scoring_version"]
    await labs.ok("POST", f"/reward-models/{second}/activate")
    with_second = await rewarded(labs)
    assert with_second["reward"] == 0.6
    assert len({each["scoring_version"] for each in (plain, with_first, with_second)}) == 3
    assert (await labs.ok("POST", "/evaluate", body()))["reward"] == plain["reward"]


async def test_a_model_without_uncertainty_cannot_lower_a_reward_by_it(labs: Client, shop: Shop) -> None:
    shop.registry.activate(shop.add(0.3))
    assert "uncertainty" not in (await rewarded(labs))["metadata"]
    config = {**COMPOSITE, "risk_aversion": 1.0}
    refused = await labs.call("POST", "/evaluate", body(GOOD, reward_config=config))
    assert_error(refused, 400, "invalid_reward_config")
    assert "knows its uncertainty" in refused.json()["message"]


async def test_answers_name_the_judges_that_made_the_reward(labs: Client, shop: Shop) -> None:
    model, next_one = shop.add(0.3), shop.add(0.6)
    shop.registry.activate(model)
    both = {"composite": {"combine": "min", "parts": [{"judge": "rubric"}, {"judge": "reward_model"}]}}
    of_none = {"composite": {"combine": "weighted_sum", "parts": [{"judge": "rubric"}]}}
    group = {**WHERE, "responses": [{"id": "a", "messages": GOOD}, {"id": "b", "messages": BAD}]}
    for config, evaluated, ranked in (
        (COMPOSITE, f"reward_model:{model}", f"reward_model:{model}"),
        (both, f"rubric+reward_model:{model}", f"rubric+reward_model:{model}"),
        (of_none, "state+rule+local", "local"),
        ({}, "state+rule+local", "local"),
    ):
        alone = await labs.ok("POST", "/evaluate", body(reward_config=config))
        batch = await labs.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **body(reward_config=config)}]})
        assert alone["metadata"]["judge"] == batch["results"][0]["metadata"]["judge"] == evaluated
        assert (await labs.ok("POST", "/rank", {**group, "reward_config": config}))["metadata"]["judge"] == ranked
    shop.registry.activate(next_one)
    assert (await rewarded(labs))["metadata"]["judge"] == f"reward_model:{next_one}"


async def test_a_model_activated_by_another_process_serves_from_the_next_request_on(labs: Client, shop: Shop) -> None:
    first, second = shop.add(0.3), shop.add(0.6)
    for model, value in ((first, 0.3), (second, 0.6), (first, 0.3)):
        shop.registry.activate(model)
        assert (await rewarded(labs))["reward"] == value
    shop.registry.deactivate()
    assert_error(await labs.call("POST", "/evaluate", body(reward_config=COMPOSITE)), 400, "invalid_reward_config")


async def test_caps_hold_whatever_the_model_says(labs: Client, shop: Shop) -> None:
    shop.registry.activate(shop.add(0.9))
    plain = await labs.ok("POST", "/evaluate", body(BAD))
    learned = await rewarded(labs, BAD)
    assert plain["reward"] < 0.5
    assert learned["reward"] < 0.5


async def test_a_damaged_model_makes_no_reward(labs: Client, shop: Shop) -> None:
    model = shop.add(0.3)
    shop.registry.activate(model)
    (shop.registry.folder / model / "heads.safetensors").write_bytes(b"damaged")
    response = await labs.call("POST", "/evaluate", body(reward_config=COMPOSITE))
    assert_error(response, 502, "judge_failed")
    assert "reward" not in response.json()
    assert (await labs.ok("POST", "/evaluate", body()))["reward"] > 0


@pytest.mark.parametrize("name", ["rm_000000000000", "rm_x", "..", "active.json"])
async def test_an_unknown_model_is_not_found(labs: Client, name: str) -> None:
    assert (await labs.call("POST", f"/reward-models/{name}/activate")).status_code == 404


async def test_a_model_of_another_encoder_is_a_conflict_and_the_one_before_serves_on(labs: Client, shop: Shop) -> None:
    good, foreign = shop.add(0.3), shop.add(0.6, encoder_version="another/1")
    await labs.ok("POST", f"/reward-models/{good}/activate")
    response = await labs.call("POST", f"/reward-models/{foreign}/activate")
    assert_error(response, 409, "conflict")
    assert str(shop.registry.folder) not in response.text
    assert (await rewarded(labs))["reward"] == 0.3


async def test_activating_takes_an_operators_key_and_listing_any(house: House, shop: Shop) -> None:
    model = shop.add(0.3)
    key = await house.key()
    house.end_development_mode()
    async with house.client(key) as client:
        assert [each["id"] for each in (await client.ok("GET", "/reward-models"))["reward_models"]] == [model]
        assert_error(await client.call("POST", f"/reward-models/{model}/activate"), 403, "insufficient_scope")
    assert shop.registry.active_id() is None
    async with house.client() as nobody:
        assert (await nobody.call("GET", "/reward-models")).status_code == 401


async def test_a_model_that_judges_style_serves_only_if_forced(labs: Client, shop: Shop) -> None:
    style = {"neighbours": {"n": 90, "accuracy": {"value": 0.28}}}
    model = shop.add(0.4, style=style)
    response = await labs.call("POST", f"/reward-models/{model}/activate")
    assert_error(response, 409, "conflict")
    assert "judges style, not content: 0.280 of the 90 pairs" in response.json()["message"]
    assert shop.registry.active_id() is None
    await labs.ok("POST", f"/reward-models/{model}/activate?force=true")
    assert (await rewarded(labs))["reward"] == 0.4
