"""With too few rows to check doubt on, dialogues that were left out of the fit say how noisy labels are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reward_server.fitting.reward_model.head_training import Recipe, fit
from reward_server.reward_models.heads import Exact
from reward_server.reward_models.leave_out import noise_left_out
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.model import RewardModel, with_uncertainty

NOISE = 0.1
WIDTH = 12
QUICK = Recipe(epochs=60, learning_rate=2e-2, l2=(0.1, 1.0, 10.0))
WEIGHTS = np.random.default_rng(7).normal(size=WIDTH) * 0.06


def drawn(n: int, seed: int, *, per_group: int = 1, shared: float = 0.0) -> tuple[Exact, Exact, list[str]]:
    """Rows, labels with noise of a known size, and groups, whose rows may have a part of their noise in common."""
    random = np.random.default_rng(seed)
    place = np.arange(n) // per_group
    rows = random.normal(size=(n, WIDTH))
    noise = NOISE * random.normal(size=n) + shared * random.normal(size=n)[place]
    return rows, 0.5 + rows @ WEIGHTS + noise, [f"g{each}" for each in place]


def refitted(rows: Exact, labels: Exact, strength: float, fresh: Exact) -> Exact:
    """A ridge with a free intercept, predicting other rows."""
    centre, middle = rows.mean(axis=0), labels.mean()
    matrix = (rows - centre).T @ (rows - centre) + strength * np.eye(rows.shape[1])
    found: Exact = middle + (fresh - centre) @ np.linalg.solve(matrix, (rows - centre).T @ (labels - middle))
    return found


@pytest.mark.parametrize("width", [3, WIDTH])
def test_one_fit_says_what_refitting_without_each_group_would(width: int) -> None:
    rows, labels, groups = drawn(14, 0, per_group=3)
    rows, strength, total = rows[:, :width], 2.5, 0.0
    inside = labels - refitted(rows, labels, strength, rows)
    for name in set(groups):
        own = np.array([each == name for each in groups])
        missed = labels[own] - refitted(rows[~own], labels[~own], strength, rows[own])
        total += float(missed @ inside[own])
    assert noise_left_out(rows, labels, groups, strength) == pytest.approx(total / len(labels))


@pytest.mark.parametrize("n", [20, 40])
def test_noise_of_a_known_size_is_found(n: int) -> None:
    strength = NOISE**2 / 0.06**2
    found = [noise_left_out(*drawn(n, seed), strength) for seed in range(60)]
    assert np.sqrt(np.mean([each or 0.0 for each in found])) == pytest.approx(NOISE, rel=0.1)


def test_what_rows_of_a_dialogue_share_counts_as_noise() -> None:
    """Rows that were left out one by one would be known from their neighbours."""
    strength, together, alone = NOISE**2 / 0.06**2, [], []
    for seed in range(60):
        rows, labels, groups = drawn(30, seed, per_group=5, shared=0.2)
        together.append(noise_left_out(rows, labels, groups, strength) or 0.0)
        alone.append(noise_left_out(rows, labels, [str(n) for n in range(30)], strength) or 0.0)
    assert np.sqrt(np.mean(together)) == pytest.approx(np.hypot(NOISE, 0.2), rel=0.15)
    assert np.mean(together) > np.mean(alone)


def test_too_few_rows_or_groups_say_nothing() -> None:
    rows, labels, groups = drawn(12, 0, per_group=3)
    assert noise_left_out(rows, labels, groups, 1.0) is not None
    assert noise_left_out(rows[:7], labels[:7], list("abcdefg"), 1.0) is None
    assert noise_left_out(rows[:9], labels[:9], groups[:9], 1.0) is None


# --- in a trained model -----------------------------------------------------------------------------


def examples(n: int, seed: int) -> ExampleMatrices:
    rows, labels, _ = drawn(n, seed)
    none, few = np.zeros((0, WIDTH), dtype=np.float32), np.zeros(0, dtype=np.float32)
    return ExampleMatrices(rows.astype(np.float32), labels[:, None].astype(np.float32), none, none, few, few)


def trained(checked: int, seed: int, groups: list[str] | None) -> RewardModel:
    train, middle = examples(24, seed), examples(checked, 1000 + seed)
    fitted = fit(("score",), train, middle, QUICK)
    return with_uncertainty(fitted.heads, train, middle, fitted.l2, groups=groups)


def coverage(checked: int, groups: list[str] | None) -> float:
    """The share of fresh labels in intervals that are meant for 90 %, over several models."""
    inside = []
    for seed in range(8):
        fresh = examples(300, 2000 + seed)
        found = trained(checked, seed, groups).predict(fresh.features)
        assert found.epistemic is not None
        assert found.noise is not None
        errors = np.abs(found.values[:, 0] - fresh.labels[:, 0])
        inside.append(errors <= 1.645 * np.hypot(found.epistemic, found.noise))
    return float(np.mean(inside))


@pytest.mark.slow
def test_with_few_rows_to_check_on_intervals_are_as_honest_as_with_enough() -> None:
    groups = [f"g{n}" for n in range(24)]
    few = coverage(4, groups)
    assert 0.8 < few < 0.97
    assert few > coverage(8, None) - 0.03


def test_without_rows_to_check_on_there_is_doubt_all_the_same() -> None:
    train = examples(24, 0)
    fitted = fit(("score",), train, examples(4, 1), QUICK)
    model = with_uncertainty(fitted.heads, train, examples(0, 1), fitted.l2, groups=[f"g{n}" for n in range(24)])
    noise = model.predict(train.features).noise
    assert noise is not None
    assert noise[0] == pytest.approx(NOISE, rel=0.6)


@pytest.mark.parametrize("checked", [0, 4, 12])
@pytest.mark.parametrize("label", [0.0, 0.7, 1.0])
def test_labels_that_are_all_alike_tell_of_no_doubt(checked: int, label: float) -> None:
    """Not even where those it is checked on differ: the prior is on the scale of what was learned from."""
    train, middle = examples(24, 0), examples(checked, 1)
    train = replace(train, labels=np.full_like(train.labels, label))
    names = tuple(f"g{n}" for n in range(24))
    fitted = fit(("score",), train, middle, QUICK)
    model = with_uncertainty(fitted.heads, train, middle, fitted.l2, groups=names)
    assert model.posterior is None
    assert np.isfinite(model.predict(middle.features).values).all()


def test_a_noise_that_is_below_zero_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding can leave the sum of squares there."""
    monkeypatch.setattr("reward_server.reward_models.model.noise_left_out", lambda *_: -1e-18)
    assert trained(4, 0, [f"g{n}" for n in range(24)]).posterior is None


def test_without_groups_there_is_none() -> None:
    assert trained(4, 0, None).posterior is None
    assert trained(4, 0, ["one"] * 24).posterior is None
