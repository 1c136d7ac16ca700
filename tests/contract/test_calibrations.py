"""`reward_config.calibration` and GET /calibrations: another scale beside the reward, for its own version alone."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pytest

from reward_server.fitting.calibration.calibration_fit import LabelledRows, fit
from reward_server.reward_models.calibration import Calibration, save
from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.model_shop import COMPOSITE, Shop
from tests.contract.test_evaluate import BAD, FAIR, GOOD, body

pytestmark = pytest.mark.usefixtures("one_encoder")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OTHER_VERSION = "sv_ba9876543210"


def fitted(house: House, owner: str | None = None, method: str = "isotonic", name: str = "reward") -> Calibration:
    """A calibration in the server's folder."""
    calibration = fitted_alone(owner or version_of(house), method, name)
    save(calibration, house.settings.calibrations)
    return calibration


def version_of(house: House) -> str:
    version: str = house.app.state.services.evaluations._scorer.scoring_version
    return version


@cache
def fitted_alone(version: str, method: str, name: str) -> Calibration:
    """Fitted once a process: intervals of its error take half a second."""
    rewards = np.random.default_rng(0).random(300)
    labels = (np.random.default_rng(1).random(300) < rewards**2).astype(np.float64)
    data = LabelledRows({name: rewards}, labels, tuple(str(k) for k in range(300)))
    return fit(data, method, version, NOW)


def with_calibration(calibration_id: str, messages: list[Json] = GOOD, **fields: object) -> Json:
    return body(messages, reward_config={"calibration": calibration_id, **fields})


async def test_a_calibrated_reward_stands_beside_the_reward(labs: Client, house: House) -> None:
    calibration = fitted(house)
    plain = await labs.ok("POST", "/evaluate", body(FAIR))
    result = await labs.ok("POST", "/evaluate", with_calibration(calibration.id, FAIR))
    assert result["reward"] == plain["reward"]
    assert result["scores"] == plain["scores"]
    assert result["metadata"]["calibration_id"] == calibration.id
    assert result["metadata"]["calibrated"] == calibration.apply(plain["reward"]) != plain["reward"]
    assert "calibrated" not in plain["metadata"]


async def test_items_of_a_batch_are_calibrated_as_alone_and_refused_alone(labs: Client, house: House) -> None:
    calibration = fitted(house)
    items = [
        {"id": "good", **with_calibration(calibration.id)},
        {"id": "bad", **with_calibration(calibration.id, BAD)},
        {"id": "unknown", **with_calibration("cal_000000000000")},
        {"id": "plain", **body()},
    ]
    results = {r["id"]: r for r in (await labs.ok("POST", "/batch/evaluate", {"items": items}))["results"]}
    for name, messages in (("good", GOOD), ("bad", BAD)):
        alone = await labs.ok("POST", "/evaluate", with_calibration(calibration.id, messages))
        assert results[name]["metadata"]["calibrated"] == alone["metadata"]["calibrated"]
    assert results["unknown"]["code"] == "invalid_reward_config"
    assert "reward" not in results["unknown"]
    assert "calibrated" not in results["plain"]["metadata"]


async def test_a_calibration_of_another_version_is_refused(labs: Client, house: House) -> None:
    other = fitted(house, OTHER_VERSION)
    response = await labs.call("POST", "/evaluate", with_calibration(other.id))
    assert_error(response, 409, "calibration_mismatch")
    of_another_reward = fitted(house, name="politeness")
    response = await labs.call("POST", "/evaluate", with_calibration(of_another_reward.id))
    assert_error(response, 409, "calibration_mismatch")


async def test_an_unknown_or_damaged_calibration_is_refused(labs: Client, house: House) -> None:
    calibration = fitted(house)
    path = house.settings.calibrations / f"{calibration.id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n": 1_000_000}))
    for name in (calibration.id, "cal_999999999999", "cal_x", "../secret"):
        error = assert_error(await labs.call("POST", "/evaluate", with_calibration(name)), 400, "invalid_reward_config")
        assert error["errors"][0]["loc"] == ["reward_config", "calibration"]
    assert "calibration_damaged" in house.logs.getvalue()


@pytest.mark.parametrize(
    "other", [{"quality_weights": {"discovery": 1.0}}, {"skip_safety_gate": True}, {"risk_aversion": 1.0}]
)
async def test_a_calibration_goes_with_the_plain_reward_alone(labs: Client, house: House, other: Json) -> None:
    calibration = fitted(house)
    response = await labs.call("POST", "/evaluate", with_calibration(calibration.id, **other))
    assert_error(response, 400, "invalid_reward_config")


async def test_answers_without_a_place_for_it_refuse_it(labs: Client, house: House) -> None:
    config = {"reward_config": {"calibration": fitted(house).id}}
    sides = {"response_a": {"messages": GOOD}, "response_b": {"messages": BAD}}
    group = {"responses": [{"id": "a", "messages": GOOD}, {"id": "b", "messages": BAD}]}
    assert_error(await labs.call("POST", "/compare", {**WHERE, **sides, **config}), 400, "invalid_reward_config")
    assert_error(await labs.call("POST", "/rank", {**WHERE, **group, **config}), 400, "invalid_reward_config")
    assert_error(await labs.call("POST", "/episodes", {**WHERE, **config}), 400, "invalid_reward_config")


async def test_risk_aversion_without_a_known_uncertainty_is_a_clear_400(labs: Client) -> None:
    response = await labs.call("POST", "/evaluate", body(GOOD, reward_config={"risk_aversion": 1.0}))
    assert_error(response, 400, "invalid_reward_config")
    assert "uncertainty" in response.json()["message"]


async def test_the_list_shows_what_there_is(labs: Client, house: House) -> None:
    assert (await labs.ok("GET", "/calibrations"))["calibrations"] == []
    isotonic, scaling = fitted(house), fitted(house, method="min_max")
    (house.settings.calibrations / "cal_000000000000.json").write_text("{")
    found = {each["id"]: each for each in (await labs.ok("GET", "/calibrations"))["calibrations"]}
    assert set(found) == {isotonic.id, scaling.id}
    shown = found[isotonic.id]
    assert (shown["method"], shown["n"], shown["uses_labels"]) == ("isotonic", 300, True)
    assert shown["scoring_version"] == isotonic.belongs_to
    assert shown["created_at"] == "2026-01-01T00:00:00Z"
    [reward] = shown["rewards"]
    assert reward["ece_after"]["value"] < reward["ece_before"]["value"]
    assert found[scaling.id]["uses_labels"] is False
    assert found[scaling.id]["rewards"] == [{"name": "reward"}]


async def test_a_calibration_of_a_learned_model_names_it(labs: Client, house: House) -> None:
    fitted(house, "rm_0123456789ab")
    [shown] = (await labs.ok("GET", "/calibrations"))["calibrations"]
    assert shown["reward_model_id"] == "rm_0123456789ab"
    assert "scoring_version" not in shown


# --- and reward models ------------------------------------------------------------------------------


async def activate(labs: Client, model: str) -> None:
    await labs.ok("POST", f"/reward-models/{model}/activate")


async def test_a_calibration_of_the_rubric_survives_activations(labs: Client, house: House, shop: Shop) -> None:
    """Fitted without a model and with one: the rubric's rewards are the same under all of them."""
    first, second = shop.add(0.3), shop.add(0.6)
    without = fitted(house)
    plain = await labs.ok("POST", "/evaluate", with_calibration(without.id))
    await activate(labs, first)
    with_first = fitted(house)
    assert with_first.belongs_to != without.belongs_to
    for model in (first, second):
        await activate(labs, model)
        for calibration in (without, with_first):
            found = await labs.ok("POST", "/evaluate", with_calibration(calibration.id))
            assert found["reward"] == plain["reward"]
            assert found["metadata"]["calibrated"] == plain["metadata"]["calibrated"]
    shop.registry.deactivate()
    assert (await labs.call("POST", "/evaluate", with_calibration(with_first.id))).status_code == 200


async def test_a_calibration_of_a_model_is_used_while_that_model_is_active(
    labs: Client, house: House, shop: Shop
) -> None:
    first, second = shop.add(0.3), shop.add(0.6)
    calibration = fitted(house, first)
    wanted = with_calibration(calibration.id, **COMPOSITE)

    error = await labs.call("POST", "/evaluate", wanted)
    assert_error(error, 409, "calibration_mismatch")
    assert first in error.json()["message"]
    assert "no reward model is active" in error.json()["message"]

    await activate(labs, first)
    found = await labs.ok("POST", "/evaluate", wanted)
    assert found["reward"] == 0.3
    assert found["metadata"]["calibration_id"] == calibration.id
    assert found["metadata"]["calibrated"] == calibration.apply(0.3) != 0.3

    await activate(labs, second)
    for path, sent in (("/evaluate", wanted), ("/batch/evaluate", {"items": [{"id": "one", **wanted}]})):
        response = await labs.call("POST", path, sent)
        assert first in response.text
        assert second in response.text
        assert "calibration_mismatch" in response.text
    await activate(labs, first)
    assert (await labs.ok("POST", "/evaluate", wanted))["metadata"]["calibrated"] == found["metadata"]["calibrated"]


async def test_a_calibration_of_a_model_goes_with_that_models_reward_alone(
    labs: Client, house: House, shop: Shop
) -> None:
    model = shop.add(0.3)
    await activate(labs, model)
    calibration = fitted(house, model)
    both = {"combine": "min", "parts": [{"judge": "rubric"}, {"judge": "reward_model"}]}
    for other in (
        {},
        {"composite": both},
        {**COMPOSITE, "risk_aversion": 1.0},
        {**COMPOSITE, "skip_safety_gate": True},
    ):
        response = await labs.call("POST", "/evaluate", with_calibration(calibration.id, **other))
        error = assert_error(response, 400, "invalid_reward_config")
        assert error["errors"][0]["loc"] == ["reward_config", "calibration"]
    of_the_rubric = fitted(house)
    response = await labs.call("POST", "/evaluate", with_calibration(of_the_rubric.id, **COMPOSITE))
    assert_error(response, 400, "invalid_reward_config")


async def test_what_a_cap_holds_down_is_calibrated_held_down(labs: Client, house: House, shop: Shop) -> None:
    model = shop.add(0.9)
    await activate(labs, model)
    calibration = fitted(house, model)
    found = await labs.ok("POST", "/evaluate", with_calibration(calibration.id, BAD, **COMPOSITE))
    assert found["reward"] < 0.5
    assert found["metadata"]["calibrated"] == calibration.apply(found["reward"])


async def test_no_number_is_calibrated_by_another_models_scale(labs: Client, house: House, shop: Shop) -> None:
    """The model changes after the check: the item fails, or is of the model that it was checked for."""
    first, second = shop.add(0.3), shop.add(0.6)
    await activate(labs, first)
    calibration = fitted(house, first)
    items = [{"id": str(k), **with_calibration(calibration.id, **COMPOSITE)} for k in range(30)]
    house.matcher.close()
    working = asyncio.create_task(labs.ok("POST", "/batch/evaluate", {"items": items}))
    await house.matcher.somebody_waits()
    await activate(labs, second)
    house.matcher.open()
    for each in (await working)["results"]:
        assert (each["reward"], each["metadata"]["calibrated"]) == (0.3, calibration.apply(0.3))


# --- and several rewards at once --------------------------------------------------------------------

BOTH: Json = {
    "composite": {"combine": "weighted_sum", "parts": [{"judge": "rubric"}, {"judge": "reward_model", "weight": 0.5}]}
}


def fitted_together(house: House, *names: str, owner: str | None = None, combine: bool = True) -> Calibration:
    """A calibration of several rewards in the server's folder, as rows with `rewards` make it."""
    calibration = fitted_from(owner or version_of(house), names, combine=combine)
    save(calibration, house.settings.calibrations)
    return calibration


@cache
def fitted_from(version: str, names: tuple[str, ...], *, combine: bool) -> Calibration:
    random = np.random.default_rng(2)
    rewards = {name: random.random(300) for name in names}
    labels = (random.random(300) < np.mean([each**2 for each in rewards.values()], axis=0)).astype(np.float64)
    data = LabelledRows(rewards, labels, tuple(str(k) for k in range(300)))
    return fit(data, "isotonic", version, NOW, combine=combine)


async def test_parts_of_a_composite_are_calibrated_by_name_and_combined(labs: Client, house: House, shop: Shop) -> None:
    await activate(labs, shop.add(0.3))
    together, apart = [fitted_together(house, "rubric", "reward_model", combine=each) for each in (True, False)]
    plain = await labs.ok("POST", "/evaluate", body(FAIR))
    alone = {"rubric": plain["reward"], "reward_model": 0.3}
    found = await labs.ok("POST", "/evaluate", with_calibration(together.id, FAIR, **BOTH))
    rewards = {name: together.apply(value, name) for name, value in alone.items()}
    assert found["metadata"]["calibrated"] == {"rewards": rewards, "combined": together.combined(alone)}
    assert rewards != alone
    assert found["metadata"]["calibration_id"] == together.id
    uncalibrated = await labs.ok("POST", "/evaluate", body(FAIR, reward_config=BOTH))
    assert found["reward"] == uncalibrated["reward"]
    batch = await labs.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **with_calibration(apart.id, **BOTH)}]})
    assert set(batch["results"][0]["metadata"]["calibrated"]) == {"rewards"}


async def test_parts_are_calibrated_as_the_caps_leave_them(labs: Client, house: House, shop: Shop) -> None:
    await activate(labs, shop.add(0.9))
    calibration = fitted_together(house, "rubric", "reward_model")
    of_the_model = await labs.ok("POST", "/evaluate", body(BAD, reward_config=COMPOSITE))
    of_the_rubric = await labs.ok("POST", "/evaluate", body(BAD))
    assert of_the_model["reward"] < 0.5
    found = await labs.ok("POST", "/evaluate", with_calibration(calibration.id, BAD, **BOTH))
    alone = {"rubric": of_the_rubric["reward"], "reward_model": of_the_model["reward"]}
    assert found["metadata"]["calibrated"]["combined"] == calibration.combined(alone)


async def test_a_calibration_of_parts_says_what_it_maps_where_it_does_not_fit(
    labs: Client, house: House, shop: Shop
) -> None:
    first, second = shop.add(0.3), shop.add(0.6)
    await activate(labs, first)
    both, other = fitted_together(house, "rubric", "reward_model"), fitted_together(house, "rubric", "model")
    for calibration, config in ((both, {}), (both, COMPOSITE), (other, BOTH)):
        response = await labs.call("POST", "/evaluate", with_calibration(calibration.id, **config))
        assert_error(response, 409, "calibration_mismatch")
        assert f"maps {', '.join(calibration.names)}; " in response.json()["message"]
    for more in ({"risk_aversion": 1.0}, {"quality_weights": {"discovery": 1.0}}, {"skip_safety_gate": True}):
        for config in (BOTH, {}):  # what is wrong with the request itself is said first
            response = await labs.call("POST", "/evaluate", with_calibration(both.id, **config, **more))
            assert_error(response, 400, "invalid_reward_config")
    await activate(labs, second)
    assert_error(await labs.call("POST", "/evaluate", with_calibration(both.id, **BOTH)), 409, "calibration_mismatch")


@pytest.mark.slow
async def test_which_activations_a_calibration_of_parts_survives(labs: Client, house: House, shop: Shop) -> None:
    """The rubric's own survives all, a model's goes with that model, and no model answers for a rubric."""
    first, second = shop.add(0.3), shop.add(0.6)
    await activate(labs, first)
    of_the_rubric = fitted_together(house, "rubric", combine=False)
    of_the_model = fitted_together(house, "reward_model", owner=first, combine=False)
    of_both = fitted_together(house, "rubric", "reward_model", owner=first)
    mapped = (await labs.ok("POST", "/evaluate", with_calibration(of_the_model.id, **COMPOSITE)))["metadata"]
    assert mapped["calibrated"] == {"rewards": {"reward_model": of_the_model.apply(0.3, "reward_model")}}
    refused = await labs.call("POST", "/evaluate", with_calibration(of_both.id, **BOTH))
    assert_error(refused, 409, "calibration_mismatch")
    await activate(labs, second)
    refused = await labs.call("POST", "/evaluate", with_calibration(of_the_model.id, **COMPOSITE))
    assert_error(refused, 409, "calibration_mismatch")
    assert first in refused.text
    plain = await labs.ok("POST", "/evaluate", with_calibration(of_the_rubric.id))
    assert plain["metadata"]["calibrated"] == {"rewards": {"rubric": of_the_rubric.apply(plain["reward"], "rubric")}}


async def test_the_list_shows_how_rewards_are_combined(labs: Client, house: House) -> None:
    together, apart = [fitted_together(house, "rubric", "model", combine=each) for each in (True, False)]
    found = {each["id"]: each for each in (await labs.ok("GET", "/calibrations"))["calibrations"]}
    assert together.combination is not None
    assert found[together.id]["combination"]["weights"] == together.combination.weights
    assert found[together.id]["combination"]["ece_after"]["value"] == together.combination.ece_after.value
    assert "combination" not in found[apart.id]
