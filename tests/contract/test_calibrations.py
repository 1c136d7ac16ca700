"""`reward_config.calibration` and GET /calibrations: another scale beside the reward, for its own version alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from reward_server.reward_models.calibration import Calibration, save
from reward_server.reward_models.calibration_fit import LabelledRows, fit
from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.test_evaluate import BAD, FAIR, GOOD, body

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OTHER_VERSION = "sv_ba9876543210"


def fitted(house: House, owner: str | None = None, method: str = "isotonic", name: str = "reward") -> Calibration:
    """A calibration in the server's folder."""
    version = owner or house.app.state.services.evaluations._scorer.scoring_version
    rewards = np.random.default_rng(0).random(300)
    labels = (np.random.default_rng(1).random(300) < rewards**2).astype(np.float64)
    data = LabelledRows({name: rewards}, labels, tuple(str(k) for k in range(300)))
    calibration = fit(data, method, version, NOW)
    save(calibration, house.settings.calibrations)
    return calibration


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
