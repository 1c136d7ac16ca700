"""Calibrations: monotone, frozen, refused where they cannot be trusted, better than what they were fitted on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward_server.errors import CalibrationMismatch, ConfigurationError, InvalidRequest, JudgeFailed
from reward_server.fitting.calibration.calibration_fit import (
    MINIMUM,
    JudgedPairs,
    LabelledRows,
    check_method,
    fit,
    folds,
    judged,
)
from reward_server.reward_models.calibration import Calibration, CalibrationShelf, content_id, load, save
from reward_server.reward_models.reliability import Floats

VERSION, OTHER_VERSION = "sv_0123456789ab", "sv_ba9876543210"
NOW = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
LABEL_FREE = ("z_score", "min_max", "percentile")


def rows(n: int = 400, seed: int = 0, labels: bool = True) -> LabelledRows:
    """Rewards r whose conversations are good with chance r squared: honest in rank, not in size."""
    generator = np.random.default_rng(seed)
    rewards = generator.random(n)
    good = (generator.random(n) < rewards**2).astype(np.float64)
    return LabelledRows({"reward": rewards}, good if labels else None, tuple(f"d{k}" for k in range(n)))


def pairs(n: int = 400, temperature: float = 0.1, seed: int = 0) -> JudgedPairs:
    generator = np.random.default_rng(seed)
    first, second = generator.random(n), generator.random(n)
    won = generator.random(n) < 1 / (1 + np.exp(-(first - second) / temperature))
    return JudgedPairs({"reward": first}, {"reward": second}, won.astype(np.float64), tuple(f"d{k}" for k in range(n)))


def of(values: Floats, labels: Floats | None = None, name: str = "reward") -> LabelledRows:
    return LabelledRows({name: values}, labels, tuple(str(k) for k in range(len(values))))


def fitted(method: str, n: int = 400) -> Calibration:
    return fit(pairs(n) if method == "temperature" else rows(n), method, VERSION, NOW)


@pytest.mark.parametrize("method", list(MINIMUM))
@given(a=st.floats(-2, 3), b=st.floats(-2, 3))
def test_every_map_is_monotone_and_stays_in_its_range(method: str, a: float, b: float) -> None:
    calibration = FITTED[method]
    low, high = calibration.apply(min(a, b)), calibration.apply(max(a, b))
    assert calibration.range[0] <= low <= high <= calibration.range[1]


FITTED: dict[str, Calibration] = {method: fitted(method) for method in MINIMUM}


@pytest.mark.parametrize("method", [method for method in MINIMUM if method != "isotonic"])
def test_a_small_step_of_the_reward_is_a_small_step_of_the_calibrated_one(method: str) -> None:
    values = [FITTED[method].apply(k / 1000) for k in range(1001)]
    assert max(np.diff(values)) < 0.05


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_calibrating_lowers_the_error_on_rows_that_were_not_fitted(method: str) -> None:
    [only] = FITTED[method].maps
    assert only.ece_before is not None
    assert only.ece_after is not None
    assert only.ece_after.high < only.ece_before.low
    assert only.ece_before.low <= only.ece_before.value <= only.ece_before.high


def test_the_error_after_is_cross_fitted_and_not_that_of_the_fitted_rows() -> None:
    data = rows(200)
    assert data.labels is not None
    in_sample = np.array([FITTED_200.apply(value) for value in data.rewards["reward"]])
    assert abs(in_sample.mean() - data.labels.mean()) < 1e-3
    found = judged(data, "isotonic", "reward")
    assert found is not None
    assert (np.abs(found.after - in_sample) > 0.01).any()


FITTED_200 = fitted("isotonic", 200)


def test_the_temperature_is_that_of_the_people_who_judged() -> None:
    [only] = fit(pairs(5000, temperature=0.2), "temperature", VERSION, NOW).maps
    assert only.curve.shape == "logistic"
    assert only.curve.temperature == pytest.approx(0.2, rel=0.1)


def test_winners_that_always_lead_give_a_temperature_above_zero() -> None:
    first, second = np.linspace(0.6, 0.9, 60), np.linspace(0.1, 0.4, 60)
    data = JudgedPairs({"reward": first}, {"reward": second}, np.ones(60), tuple(str(k) for k in range(60)))
    [only] = fit(data, "temperature", VERSION, NOW).maps
    assert only.curve.shape == "logistic"
    assert 0.01 < only.curve.temperature < 1


def test_swapping_the_sides_of_all_pairs_changes_nothing_that_is_fitted() -> None:
    data = pairs()
    swapped = JudgedPairs(data.second, data.first, 1.0 - data.outcomes, data.groups)
    one, other = (fit(each, "temperature", VERSION, NOW).maps[0] for each in (data, swapped))
    assert one.curve == pytest.approx(other.curve) or one.curve.model_dump() == pytest.approx(other.curve.model_dump())


def test_isotonic_is_flat_beyond_the_rewards_it_has_seen() -> None:
    data = rows()
    assert data.labels is not None
    middle = LabelledRows({"reward": 0.3 + 0.4 * data.rewards["reward"]}, data.labels, data.groups)
    calibration = fit(middle, "isotonic", VERSION, NOW)
    assert calibration.apply(0.0) == calibration.apply(0.3)
    assert calibration.apply(1.0) == calibration.apply(0.7)


def test_z_scores_min_max_and_percentiles_are_those_of_all_fitted_rows() -> None:
    # A normaliser that refreshes every 100 values still says that the mean is 0 here.
    values = np.concatenate([np.zeros(100), np.full(99, 10.0)])
    z, spread, rank = (fit(of(values), method, VERSION, NOW) for method in LABEL_FREE)
    assert z.apply(4.9748743718592965) == pytest.approx(0.0, abs=1e-4)
    assert z.apply(10.0) == pytest.approx((10 - values.mean()) / values.std(), abs=1e-4)
    assert [spread.apply(v) for v in (0, 5, 10)] == [0.0, 0.5, 1.0]
    assert [rank.apply(v) for v in (0, 10)] == pytest.approx([0.2513, 0.7513], abs=1e-4)


@pytest.mark.parametrize("method", LABEL_FREE)
def test_an_outlier_is_cut_and_not_stretched(method: str) -> None:
    calibration = fit(of(np.linspace(0, 49, 200)), method, VERSION, NOW)
    assert calibration.apply(1000.0) <= calibration.range[1] <= 5.0
    assert calibration.apply(-1000.0) >= calibration.range[0] >= -5.0


@pytest.mark.parametrize("method", LABEL_FREE)
def test_scaling_says_that_it_is_scaling_and_claims_no_error(method: str) -> None:
    assert FITTED[method].is_scaling
    assert FITTED[method].maps[0].ece_after is None
    assert fit(rows(labels=False), method, VERSION, NOW).maps == FITTED[method].maps


@pytest.mark.parametrize("method", list(MINIMUM))
def test_before_the_least_number_of_rows_there_is_no_calibration_at_all(method: str) -> None:
    enough = MINIMUM[check_method(method)]
    with pytest.raises(InvalidRequest, match=f"needs {enough} .* there are {enough - 1}"):
        fitted(method, enough - 1)
    assert fitted(method, enough).n == enough


@pytest.mark.parametrize("method", [*LABEL_FREE, "isotonic", "temperature"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_one_value_that_is_no_number_is_refused_and_not_passed_through(method: str, poison: float) -> None:
    data = pairs() if method == "temperature" else rows()
    side = data.first if isinstance(data, JudgedPairs) else data.rewards
    side["reward"][7] = poison
    with pytest.raises(InvalidRequest, match="not numbers"):
        fit(data, method, VERSION, NOW)


@pytest.mark.parametrize("method", [*LABEL_FREE, "isotonic", "temperature"])
def test_rewards_without_variance_are_refused(method: str) -> None:
    flat = np.full(400, 0.7)
    good = rows().labels
    data = (
        JudgedPairs({"reward": flat}, {"reward": flat}, np.ones(400), tuple(map(str, range(400))))
        if method == "temperature"
        else of(flat, good)
    )
    with pytest.raises(InvalidRequest, match="are the same"):
        fit(data, method, VERSION, NOW)


def test_labels_that_cannot_calibrate_are_refused() -> None:
    values = rows().rewards["reward"]
    for labels, said in (
        (None, "needs a label"),
        (np.ones(400), "one class"),
        (np.concatenate([np.ones(399), np.zeros(1)]), "10 labels of either kind"),
        (np.full(400, 3.0), "between 0 and 1"),
        (np.full(400, np.nan), "between 0 and 1"),
        (1.0 - values, "does not rise with the labels"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            fit(of(values, labels), "isotonic", VERSION, NOW)


def test_pairs_that_cannot_calibrate_are_refused() -> None:
    data = pairs()
    backwards = JudgedPairs(data.first, data.second, 1.0 - data.outcomes, data.groups)
    with pytest.raises(InvalidRequest, match="not higher for winners"):
        fit(backwards, "temperature", VERSION, NOW)
    with pytest.raises(InvalidRequest, match="between 0 and 1"):
        fit(JudgedPairs(data.first, data.second, data.outcomes * 2, data.groups), "temperature", VERSION, NOW)
    one_dialogue = JudgedPairs(data.first, data.second, data.outcomes, ("d",) * 400)
    with pytest.raises(InvalidRequest, match="one dialogue"):
        fit(one_dialogue, "temperature", VERSION, NOW)


def test_a_method_and_data_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="There is no method 'identity': use one of temperature, isotonic"):
        fit(rows(), "identity", VERSION, NOW)
    with pytest.raises(InvalidRequest, match="temperature needs pairs"):
        fit(rows(), "temperature", VERSION, NOW)
    with pytest.raises(InvalidRequest, match="isotonic needs rows"):
        fit(pairs(), "isotonic", VERSION, NOW)


# --- several rewards ----------------------------------------------------------------------------


def two(seed: int = 0) -> LabelledRows:
    """One reward on a scale of 1-3, another one on a scale of 100-300 that says nothing."""
    data = rows(seed=seed)
    noise = 100 + 200 * np.random.default_rng(1).random(400)
    return LabelledRows({"rubric": 1 + 2 * data.rewards["reward"], "model": noise}, data.labels, data.groups)


def test_several_rewards_keep_their_own_maps() -> None:
    calibration = fit(two(), "min_max", VERSION, NOW)
    assert calibration.apply(2.0, "rubric") == pytest.approx(0.5, abs=0.01)
    assert calibration.apply(200.0, "model") == pytest.approx(0.5, abs=0.01)
    assert calibration.n == 400
    with pytest.raises(CalibrationMismatch, match="no map"):
        calibration.apply(0.5)


def test_two_maps_of_one_name_are_refused() -> None:
    content = json.loads(FITTED["min_max"].model_dump_json())
    content["maps"] *= 2
    with pytest.raises(ValueError, match="same name"):
        Calibration.model_validate(content)


def test_a_joint_combination_is_fitted_on_labels_and_never_negative() -> None:
    calibration = fit(two(), "min_max", VERSION, NOW, combine=True)
    assert calibration.combination is not None
    weights = calibration.combination.weights
    assert weights["rubric"] > weights["model"] >= 0
    assert sum(weights.values()) == pytest.approx(1.0)
    assert calibration.combined({"rubric": 3.0, "model": 300.0}) == pytest.approx(1.0, abs=0.02)
    with pytest.raises(CalibrationMismatch, match="other rewards"):
        calibration.combined({"rubric": 3.0})
    with pytest.raises(CalibrationMismatch, match="other rewards"):
        FITTED["min_max"].combined({"reward": 0.5})


def test_combinations_that_make_no_sense_are_refused() -> None:
    for data, method, said in (
        (rows(), "min_max", "two rewards"),
        (two(), "z_score", "scale from 0 to 1"),
        (LabelledRows(two().rewards, None, two().groups), "min_max", "needs labels"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            fit(data, method, VERSION, NOW, combine=True)
    with pytest.raises(InvalidRequest, match="not pairs"):
        fit(pairs(), "temperature", VERSION, NOW, combine=True)


# --- the artefact -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(MINIMUM))
def test_the_same_data_gives_the_same_artefact_in_any_order_at_any_time(method: str) -> None:
    data = pairs() if method == "temperature" else rows()
    order = np.random.default_rng(3).permutation(400)
    groups = tuple(data.groups[k] for k in order)
    if isinstance(data, JudgedPairs):
        first, second = {"reward": data.first["reward"][order]}, {"reward": data.second["reward"][order]}
        again = fit(JudgedPairs(first, second, data.outcomes[order], groups), method, VERSION, NOW + timedelta(1))
    else:
        assert data.labels is not None
        shuffled = LabelledRows({"reward": data.rewards["reward"][order]}, data.labels[order], groups)
        again = fit(shuffled, method, VERSION, NOW + timedelta(1))
    assert again.id == FITTED[method].id
    assert again.maps == FITTED[method].maps


def test_other_data_another_owner_and_another_method_are_other_artefacts() -> None:
    ids = {fit(rows(seed=seed), "min_max", owner, NOW).id for seed in (0, 1) for owner in (VERSION, OTHER_VERSION)}
    assert len(ids | {calibration.id for calibration in FITTED.values()}) == 8


@pytest.mark.parametrize("method", list(MINIMUM))
def test_saved_and_loaded_it_is_the_same_and_saving_again_changes_nothing(method: str, tmp_path: Path) -> None:
    calibration = FITTED[method]
    path = save(calibration, tmp_path / "new")
    before = path.read_bytes()
    assert load(path) == load(path) == calibration
    assert save(calibration.model_copy(update={"created": NOW + timedelta(9)}), tmp_path / "new") == path
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [f"{calibration.id}.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 401), ("belongs_to", OTHER_VERSION), ("data_hash", "0"), ("method", "z_score"), ("range", [0.0, 2.0])],
)
def test_a_file_that_was_changed_is_refused(field: str, value: object, tmp_path: Path) -> None:
    path = save(FITTED["min_max"], tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(ConfigurationError, match=r"damaged: .*content is not the one"):
        load(path)


@pytest.mark.parametrize("damage", ["{", "", '{"id": "cal_0123456789ab"}'])
def test_a_file_that_is_no_calibration_is_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "cal_0123456789ab.json"
    path.write_text(damage)
    with pytest.raises(ConfigurationError, match="cal_0123456789ab is damaged"):
        load(path)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        ({"shape": "line", "x": [0, 1], "y": [1, 0]}, "y must not fall"),
        ({"shape": "line", "x": [1, 1], "y": [0, 1]}, "x must rise"),
        ({"shape": "line", "x": [0, 1, 2], "y": [0, 1]}, "differ in length"),
        ({"shape": "logistic", "pivot": 0.0, "temperature": 0.0}, "greater than 0"),
    ],
)
def test_a_map_that_is_not_monotone_cannot_be_loaded(curve: dict[str, object], said: str, tmp_path: Path) -> None:
    content = json.loads(FITTED["min_max"].model_dump_json())
    content["maps"][0]["curve"] = curve
    path = tmp_path / f"{content['id']}.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match=said):
        load(path)


def test_a_file_under_the_name_of_another_one_is_refused(tmp_path: Path) -> None:
    path = save(FITTED["min_max"], tmp_path)
    other = path.rename(tmp_path / "cal_000000000000.json")
    with pytest.raises(ConfigurationError, match=f"holds the calibration {FITTED['min_max'].id}"):
        load(other)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path / "cal_111111111111.json")


@pytest.mark.parametrize("owner", [VERSION, f"{VERSION}_0a1b2c3d", "rm_0123456789ab"])
def test_it_belongs_to_a_scoring_version_or_to_a_reward_model(owner: str) -> None:
    content = FITTED["isotonic"].model_dump(mode="json") | {"belongs_to": owner}
    calibration = Calibration.model_validate_json(json.dumps(content | {"id": content_id(content)}))
    assert calibration.is_of_a_model is owner.startswith("rm_")


@pytest.mark.parametrize("owner", ["", "sv_", "0123456789ab", f"{VERSION}_", f"{VERSION}_0a1b2c3", f"{VERSION}\n"])
def test_it_belongs_to_nothing_else(owner: str) -> None:
    content = FITTED["isotonic"].model_dump(mode="json") | {"belongs_to": owner}
    with pytest.raises(ValidationError):
        Calibration.model_validate_json(json.dumps(content | {"id": content_id(content)}))


def test_what_is_no_number_is_a_failure_and_never_a_calibrated_number() -> None:
    with pytest.raises(JudgeFailed):
        FITTED["isotonic"].apply(float("nan"))


def test_the_shelf_finds_what_is_there_and_leaves_out_what_is_damaged(tmp_path: Path) -> None:
    shelf = CalibrationShelf(tmp_path / "calibrations")
    assert shelf.all() == []
    old, new = FITTED["min_max"], FITTED["isotonic"].model_copy(update={"created": NOW + timedelta(1)})
    for calibration in (old, new):
        save(calibration, tmp_path / "calibrations")
    (tmp_path / "calibrations" / "cal_000000000000.json").write_text("{")
    assert [each.id for each in shelf.all()] == [new.id, old.id]
    assert shelf.find(old.id) == old
    assert shelf.find("cal_999999999999") is None
    assert shelf.find("../calibrations/" + old.id) is None
    (tmp_path / "calibrations" / f"{old.id}.json").unlink()
    assert shelf.find(old.id) is None


def test_a_dialogue_is_held_out_whole() -> None:
    groups = [f"d{k // 4}" for k in range(100)]
    masks = folds(groups)
    assert np.sum(masks, axis=0).tolist() == [1] * 100
    for mask in masks:
        assert {groups[k] for k in np.flatnonzero(mask)}.isdisjoint(groups[k] for k in np.flatnonzero(~mask))
