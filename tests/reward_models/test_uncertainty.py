"""Heads with uncertainty: both parts apart, honest far away from the data, the same in any batch."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

from reward_server.errors import InvalidRequest, JudgeFailed
from reward_server.reward_models.posterior import Floats, LinearPosterior
from reward_server.reward_models.uncertainty import (
    Ensemble,
    PosteriorPrediction,
    fit_preferences,
    fit_ridge,
    from_arrays,
    laplace_at,
    squashed,
    to_arrays,
)

NOISE = 0.3


def ensemble(rows: Floats, labels: Floats, members: int, seed: int = 0) -> Ensemble:
    """As older models hold one: heads on resampled rows."""
    generator = np.random.default_rng(seed)
    draws = (generator.integers(0, len(rows), len(rows)) for _ in range(members))
    return Ensemble(tuple(fit_ridge(rows[drawn], labels[drawn]) for drawn in draws))


def linear(n: int, d: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Rows whose label is a fixed linear function of them and noise of 0.3."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, d))
    weights = np.random.default_rng(99).normal(size=d)
    return rows, rows @ weights + 2.0 + NOISE * generator.normal(size=n)


def pairs(n: int, d: int, seed: int = 0) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(seed)
    differences = generator.normal(size=(n, d))
    chance = 1 / (1 + np.exp(-differences @ np.linspace(-1.5, 1.5, d)))
    return differences, (generator.random(n) < chance).astype(np.float64)


def test_ridge_finds_the_line_and_the_noise_of_the_labels() -> None:
    rows, labels = linear(2000, 6)
    head = fit_ridge(rows, labels)
    fresh, truth = linear(500, 6, seed=1)
    found = head.predict(fresh)
    assert np.corrcoef(found.mean, truth)[0, 1] > 0.98
    assert found.noise_std is not None
    assert found.noise_std[0] == pytest.approx(NOISE, rel=0.05)
    assert found.epistemic_std.max() < 0.1


def test_ridge_agrees_with_another_implementation_of_evidence_maximisation() -> None:
    rows, labels = linear(60, 10)
    head = fit_ridge(rows, labels)
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    other = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-10, max_iter=2000).fit(standard, labels)
    assert head.weights == pytest.approx(other.coef_, abs=2e-3)
    assert head.noise_variance == pytest.approx(1 / other.alpha_, rel=0.05)
    assert 1 / head.outside == pytest.approx(other.lambda_, rel=0.05)


def test_more_rows_lower_the_epistemic_part_and_not_the_noise() -> None:
    fresh, _ = linear(50, 6, seed=2)
    few, many = (fit_ridge(*linear(n, 6)).predict(fresh) for n in (40, 4000))
    assert many.epistemic_std.mean() < few.epistemic_std.mean() / 5
    assert few.noise_std is not None
    assert many.noise_std is not None
    assert many.noise_std[0] == pytest.approx(few.noise_std[0], rel=0.4)


@pytest.mark.parametrize("kind", ["ridge", "preferences", "ensemble"])
def test_far_away_rows_are_more_uncertain_and_nothing_is_certain(kind: str) -> None:
    head = heads()[kind]
    near = np.random.default_rng(5).normal(size=(20, 6))
    stds = [head.predict(near * far).epistemic_std.mean() for far in (1, 10, 1000)]
    assert 0 < stds[0] < stds[1] < stds[2]
    assert head.predict(np.zeros((1, 6))).epistemic_std[0] > 0


@pytest.mark.parametrize("kind", ["ridge", "preferences", "ensemble"])
def test_a_direction_that_never_varied_counts_as_unseen(kind: str) -> None:
    rows, labels = linear(100, 5)
    rows = np.hstack([rows, np.zeros((100, 1))])
    wins = (labels > np.median(labels)).astype(np.float64)
    head: LinearPosterior | Ensemble
    if kind == "ridge":
        head = fit_ridge(rows, labels)
    elif kind == "preferences":
        head = fit_preferences(rows, wins)
    else:
        head = ensemble(rows, labels, members=4)
    usual = rows[:1]
    strange = usual + np.array([[0, 0, 0, 0, 0, 4.0]])
    assert head.predict(strange).epistemic_std[0] > 2 * head.predict(usual).epistemic_std[0]


def test_labels_that_features_say_nothing_about_do_not_make_the_head_certain() -> None:
    generator = np.random.default_rng(3)
    rows, labels = generator.normal(size=(400, 4)), generator.random(400)
    head = fit_ridge(rows, labels)
    assert head.predict(100 * rows[:1]).epistemic_std[0] > head.predict(rows[:1]).epistemic_std[0] * 20


def heads() -> dict[str, LinearPosterior | Ensemble]:
    rows, labels = linear(120, 6)
    return {
        "ridge": fit_ridge(rows, labels),
        "preferences": fit_preferences(*pairs(200, 6)),
        "ensemble": ensemble(rows, labels, members=5, seed=1),
    }


@pytest.mark.parametrize("kind", list(heads()))
def test_a_row_gets_the_same_numbers_in_any_batch_and_every_time(kind: str) -> None:
    head = heads()[kind]
    rows, _ = linear(37, 6, seed=8)
    together = head.predict(rows)
    again = heads()[kind].predict(rows)
    for n in range(37):
        alone = head.predict(rows[n : n + 1])
        assert alone.mean[0] == together.mean[n] == again.mean[n]
        assert alone.epistemic_std[0] == together.epistemic_std[n] == again.epistemic_std[n]


@pytest.mark.parametrize("kind", list(heads()))
@pytest.mark.parametrize("form", ["safetensors", "json"])
def test_stored_and_read_again_it_predicts_the_same(kind: str, form: str) -> None:
    head = heads()[kind]
    arrays = to_arrays(head, "quality.")
    if form == "safetensors":
        read = from_arrays(load(save(arrays)), "quality.")
    else:
        text = json.dumps({name: values.tolist() for name, values in arrays.items()})
        read = from_arrays(json.loads(text), "quality.")
    rows, _ = linear(9, 6, seed=4)
    before, after = head.predict(rows), read.predict(rows)
    assert (before.mean == after.mean).all()
    assert (before.total_std == after.total_std).all()
    assert read.width == 6


@pytest.mark.parametrize("wrong", ["weights", "scalars", "directions"])
def test_a_damaged_store_is_refused(wrong: str) -> None:
    arrays = to_arrays(heads()["ridge"])
    missing = {name: values for name, values in arrays.items() if name != wrong}
    short = arrays | {wrong: arrays[wrong][:1]}
    poisoned = arrays | {wrong: arrays[wrong] * np.nan}
    for damaged in (missing, short, poisoned):
        with pytest.raises(InvalidRequest, match="damaged"):
            from_arrays(damaged)


def test_preferences_learn_who_wins_and_swapping_sides_swaps_the_chance() -> None:
    head = fit_preferences(*pairs(600, 6))
    fresh, outcomes = pairs(2000, 6, seed=1)
    chance = head.probability(fresh)
    assert ((chance > 0.5) == (outcomes > 0.5)).mean() > 0.75
    assert chance + head.probability(-fresh) == pytest.approx(np.ones(2000))
    assert head.probability(np.zeros((1, 6)))[0] == 0.5
    assert head.predict(fresh).noise_std is None


def test_a_winner_may_stand_on_either_side() -> None:
    differences, outcomes = pairs(300, 4)
    winners_first = np.where(outcomes[:, None] > 0.5, differences, -differences)
    one, other = fit_preferences(differences, outcomes), fit_preferences(winners_first)
    assert one.weights == pytest.approx(other.weights, abs=1e-6)


def test_doubt_draws_a_chance_towards_a_half() -> None:
    head = fit_preferences(*pairs(30, 6))
    far = 50.0 * np.linspace(-1.5, 1.5, 6)[None, :]
    plain = 1 / (1 + np.exp(-head.predict(far).mean[0]))
    assert 0.5 < head.probability(far)[0] < plain


def test_squashed_log_odds_are_chances_with_a_spread() -> None:
    found = squashed(PosteriorPrediction(np.array([0.0, 0.0, 3.0]), np.array([1e-9, 50.0, 0.5]), None))
    exact, _ = quad(lambda z: norm.pdf(z, 3.0, 0.5) / (1 + np.exp(-z)), -2, 8)
    assert found.mean == pytest.approx([0.5, 0.5, exact], abs=1e-6)
    assert found.epistemic_std[0] < 1e-6
    assert found.epistemic_std[1] == pytest.approx(0.5, abs=0.02)


def test_laplace_around_a_head_trained_elsewhere_keeps_its_weights() -> None:
    differences, outcomes = pairs(300, 4)
    weights = np.linspace(-1.5, 1.5, 4)
    few, many = (laplace_at(weights, differences[:n], 1.0) for n in (20, 300))
    rows, _ = pairs(5, 4, seed=3)
    assert many.predict(rows).mean == pytest.approx(rows @ weights)
    assert (many.predict(rows).epistemic_std < few.predict(rows).epistemic_std).all()
    fitted = fit_preferences(differences, outcomes, prior_precision=1.0)
    assert many.predict(rows).epistemic_std == pytest.approx(fitted.predict(rows).epistemic_std, rel=0.3)


def test_more_features_than_rows_are_fitted_too() -> None:
    rows, labels = linear(40, 300)
    head = fit_ridge(rows, labels)
    assert head.directions.shape[0] < 40
    assert head.directions @ head.directions.T == pytest.approx(np.eye(head.directions.shape[0]), abs=1e-6)
    wide = fit_preferences(rows, (labels > 2).astype(np.float64))
    assert np.isfinite(wide.predict(rows).epistemic_std).all()


def test_an_ensemble_keeps_what_its_members_doubt() -> None:
    rows, labels = linear(120, 6)
    head = ensemble(rows, labels, members=6, seed=2)
    found = head.predict(rows)
    within = np.mean([member.predict(rows).epistemic_std ** 2 for member in head.members], axis=0)
    assert (found.epistemic_std**2 > within).all()
    assert found.noise_std is not None


@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [
        (np.ones((3, 2)), np.ones(3), "Too little data"),
        (np.full((20, 2), np.nan), np.ones(20), "finite"),
        (np.ones((20, 2)), np.arange(20.0), "same features"),
        (np.arange(40.0).reshape(20, 2), np.ones(20), "All labels are the same"),
        (np.arange(40.0).reshape(20, 2), np.full(20, np.inf), "finite"),
        (np.arange(40.0).reshape(20, 2), np.arange(19.0), "20 rows but 19"),
    ],
)
def test_what_cannot_be_learned_from_is_one_clear_line(rows: Floats, labels: Floats, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        fit_ridge(rows, labels)


def test_pairs_that_cannot_be_learned_from_are_one_clear_line() -> None:
    rows, outcomes = pairs(20, 3)
    with pytest.raises(InvalidRequest, match="between 0 and 1"):
        fit_preferences(rows, outcomes * 2)
    with pytest.raises(InvalidRequest, match="same features"):
        fit_preferences(np.zeros((20, 3)))
    with pytest.raises(InvalidRequest, match="widths"):
        laplace_at(np.ones(2), rows, 1.0)
    with pytest.raises(InvalidRequest, match="greater than 0"):
        laplace_at(np.ones(3), rows, 0.0)


@pytest.mark.parametrize("rows", [np.ones((2, 5)), np.full((2, 6), np.nan), np.ones(6)])
def test_features_that_do_not_fit_are_a_failure_and_never_a_number(rows: Floats) -> None:
    with pytest.raises(JudgeFailed):
        heads()["ridge"].predict(rows)
