"""Fits calibrations: temperature on pairs, isotonic on labels, and plain rescaling without labels.

Too few rows, values that are not numbers, rewards without variance or against the labels are refused in one line;
none of them turns into an identity map. Errors after calibration are cross-fitted by dialogue: a map judged on the
rows it was fitted on would always look calibrated. Deterministic, and independent of the order of the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from reward_server.errors import InvalidRequest
from reward_server.fitting.calibration.calibration_data import JudgedPairs, LabelledRows
from reward_server.reward_models.calibration import (
    Calibration,
    Combination,
    Error,
    Logistic,
    Method,
    PiecewiseLinear,
    RewardMap,
    sealed,
)
from reward_server.reward_models.reliability import Floats, calibration_error

__all__ = ["MINIMUM", "JudgedPairs", "LabelledRows", "ReliabilityData", "check_method", "fit", "folds", "judged"]

MINIMUM: Mapping[Method, int] = {"temperature": 50, "isotonic": 200, "z_score": 30, "min_max": 30, "percentile": 100}
"""Fewest rows or pairs of each method."""
LEAST_OF_A_CLASS = 10
"""Fewest labels of either kind where labels are yes or no."""
FOLDS = 5
Z_LIMIT = 5.0
"""Standard deviations at which z-scores are cut: an outlier must not become a reward without bounds."""
_MOST_KNOTS = 1001


@dataclass(frozen=True, eq=False)
class ReliabilityData:
    """The data of a reliability diagram: predictions beside outcomes, before and after."""

    before: Floats
    """(n,)."""
    after: Floats
    """(n,), cross-fitted."""
    observed: Floats
    """(n,)."""


def check_method(name: str) -> Method:
    """The method of that name; `InvalidRequest` names the known ones."""
    for method in MINIMUM:
        if name == method:
            return method
    raise InvalidRequest(f"There is no method {name[:40]!r}: use one of {', '.join(MINIMUM)}.")


def fit(
    data: LabelledRows | JudgedPairs, method: str, belongs_to: str, created: datetime, *, combine: bool = False
) -> Calibration:
    """The artefact of all named rewards of the data; `combine` adds a joint combination fitted on the labels.

    Raises:
        InvalidRequest: the data is too little, not finite, without variance, or not of the kind the method needs.
    """
    known = check_method(method)
    _check(data, known)
    data = data.ordered()
    if isinstance(data, JudgedPairs):
        if combine:
            raise InvalidRequest("A joint combination needs rows with labels, not pairs.")
        maps = tuple(_pair_map(name, data) for name in sorted(data.first))
    else:
        maps = tuple(_row_map(name, data, known) for name in sorted(data.rewards))
    combination = _combination(data, known, maps) if combine and isinstance(data, LabelledRows) else None
    return sealed(
        method=known,
        belongs_to=belongs_to,
        n=len(data.groups),
        data_hash=data.digest,
        span=(-Z_LIMIT, Z_LIMIT) if known == "z_score" else (0.0, 1.0),
        maps=maps,
        combination=combination,
        created=created,
    )


def judged(data: LabelledRows | JudgedPairs, method: Method, name: str) -> ReliabilityData | None:
    """Predictions of a named reward before and after calibration, for a diagram; None where there is nothing to see."""
    if isinstance(data, JudgedPairs):
        return _judged_pairs(data, name)
    rewards, labels = data.rewards[name], data.labels
    if method != "isotonic" or labels is None or rewards.min() < 0.0 or rewards.max() > 1.0:
        return None
    after = _cross_fitted(data.groups, lambda rows: _isotonic(rewards[rows], labels[rows]).apply, rewards)
    return ReliabilityData(rewards, after, labels)


# --- what is refused ----------------------------------------------------------------------------


def _check(data: LabelledRows | JudgedPairs, method: Method) -> None:
    if isinstance(data, JudgedPairs) != (method == "temperature"):
        wanted = "pairs with a winner" if method == "temperature" else "rows with one reward each, not pairs"
        raise InvalidRequest(f"The method {method} needs {wanted}.")
    if isinstance(data, LabelledRows) and data.labels is None and method == "isotonic":
        raise InvalidRequest("The method isotonic needs a label in every row.")
    if len(data.groups) < MINIMUM[method]:
        units = "pairs" if method == "temperature" else "rows"
        raise InvalidRequest(
            f"Too little data: {method} needs {MINIMUM[method]} {units}, there are {len(data.groups)}."
        )
    sides = (data.first, data.second) if isinstance(data, JudgedPairs) else (data.rewards,)
    for side in sides:
        for name, values in side.items():
            if not np.isfinite(values).all():
                raise InvalidRequest(f"The reward {name[:40]!r} holds values that are not numbers.")
    if isinstance(data, JudgedPairs):
        _check_labels(data.outcomes, "winners")
    elif method == "isotonic" and data.labels is not None:
        _check_labels(data.labels, "labels")


def _check_labels(labels: Floats, column: str) -> None:
    if not np.isfinite(labels).all() or labels.min() < 0.0 or labels.max() > 1.0:
        raise InvalidRequest(f"The {column} must be numbers between 0 and 1.")
    kinds, counts = np.unique(labels, return_counts=True)
    if column == "labels" and len(kinds) == 1:
        raise InvalidRequest("All labels are the same: one class cannot be calibrated.")
    if column == "labels" and len(kinds) == 2 and counts.min() < LEAST_OF_A_CLASS:
        raise InvalidRequest(f"Too little data: there must be {LEAST_OF_A_CLASS} labels of either kind.")


def _varying(values: Floats, name: str) -> Floats:
    if values.max() - values.min() <= 1e-9:
        raise InvalidRequest(f"All values of the reward {name[:40]!r} are the same: there is nothing to calibrate.")
    return values


# --- rows ---------------------------------------------------------------------------------------


def _row_map(name: str, data: LabelledRows, method: Method) -> RewardMap:
    values = _varying(data.rewards[name], name)
    if method != "isotonic" or data.labels is None:
        return RewardMap(name=name, curve=_SCALES[method](values))
    curve = _isotonic(values, data.labels)
    if curve.y[0] == curve.y[-1]:
        raise InvalidRequest(f"The reward {name[:40]!r} does not rise with the labels: it cannot be calibrated.")
    judgement = judged(data, method, name)
    if judgement is None:
        after = _cross_fitted(data.groups, lambda rows: _isotonic(values[rows], _labels(data)[rows]).apply, values)
        return RewardMap(name=name, curve=curve, ece_after=_error(after, data.labels, data.groups))
    return RewardMap(
        name=name,
        curve=curve,
        ece_before=_error(judgement.before, data.labels, data.groups),
        ece_after=_error(judgement.after, data.labels, data.groups),
    )


def _labels(data: LabelledRows) -> Floats:
    return data.labels if data.labels is not None else np.zeros(0)


def _isotonic(values: Floats, labels: Floats) -> PiecewiseLinear:
    """The rising step function closest to the labels, clipped beyond the fitted range (Zadrozny & Elkan 2002)."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(values, labels)
    return _line(np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64))


def _z_score(values: Floats) -> PiecewiseLinear:
    mean, std = float(values.mean()), float(values.std())
    return PiecewiseLinear(x=(mean - Z_LIMIT * std, mean + Z_LIMIT * std), y=(-Z_LIMIT, Z_LIMIT))


def _min_max(values: Floats) -> PiecewiseLinear:
    return PiecewiseLinear(x=(float(values.min()), float(values.max())), y=(0.0, 1.0))


def _percentile(values: Floats) -> PiecewiseLinear:
    """The share of fitted rewards that are lower, half of the equal ones included, between at most 1001 knots."""
    knots, counts = np.unique(values, return_counts=True)
    shares = (np.cumsum(counts) - counts / 2) / len(values)
    if len(knots) > _MOST_KNOTS:
        kept = np.unique(np.linspace(0, len(knots) - 1, _MOST_KNOTS).round().astype(np.intp))
        knots, shares = knots[kept], shares[kept]
    return _line(knots, shares)


def _line(x: Floats, y: Floats) -> PiecewiseLinear:
    """Knots that rise; ones too close for a float to tell apart are merged."""
    kept = np.concatenate([[True], np.diff(x) > 1e-12])
    x, y = x[kept], np.maximum.accumulate(np.clip(y[kept], 0.0, 1.0))
    if len(x) == 1:
        x, y = np.array([x[0], x[0] + 1e-9]), np.array([y[0], y[0]])
    return PiecewiseLinear(x=tuple(x.tolist()), y=tuple(y.tolist()))


_SCALES: Mapping[Method, Callable[[Floats], PiecewiseLinear]] = {
    "z_score": _z_score,
    "min_max": _min_max,
    "percentile": _percentile,
}


# --- pairs --------------------------------------------------------------------------------------


def _pair_map(name: str, data: JudgedPairs) -> RewardMap:
    margins = data.first[name] - data.second[name]
    _varying(np.concatenate([margins, -margins]), name)
    curve = Logistic(pivot=_pivot(data, name), temperature=_temperature(margins, data.outcomes, name))
    judgement = _judged_pairs(data, name)
    before, after = (_error(p, data.outcomes, data.groups) for p in (judgement.before, judgement.after))
    return RewardMap(name=name, curve=curve, ece_before=before, ece_after=after)


def _pivot(data: JudgedPairs, name: str) -> float:
    """The mean reward of all sides, so that the map of one reward is its chance against an average conversation."""
    return float(np.concatenate([data.first[name], data.second[name]]).mean())


def _judged_pairs(data: JudgedPairs, name: str) -> ReliabilityData:
    margins = data.first[name] - data.second[name]

    def fitted(rows: NDArray[np.intp]) -> Callable[[Floats], Floats]:
        return Logistic(pivot=0.0, temperature=_temperature(margins[rows], data.outcomes[rows], name)).apply

    plain = Logistic(pivot=0.0, temperature=1.0).apply(margins)
    return ReliabilityData(plain, _cross_fitted(data.groups, fitted, margins), data.outcomes)


def _temperature(margins: Floats, outcomes: Floats, name: str) -> float:
    """The T of the least negative log likelihood of sigmoid(margin / T) (Guo et al. 2017, for pairs).

    Wins count as (n + 1) / (n + 2) instead of 1 (Platt 1999), so that T stays finite where all winners lead.
    """
    from scipy.optimize import brentq

    share = (len(margins) + 1.0) / (len(margins) + 2.0)
    targets = (1.0 - share) + outcomes * (2.0 * share - 1.0)

    def slope(sharpness: float) -> float:
        return float((margins * (0.5 * (1.0 + np.tanh(sharpness * margins / 2.0)) - targets)).sum())

    # The slope rises with the sharpness: a root above 0 exists where it is negative at 0.
    if slope(0.0) >= -1e-12:
        raise InvalidRequest(f"The reward {name[:40]!r} is not higher for winners: no temperature can calibrate it.")
    upper = 1.0
    while slope(upper) < 0.0:
        upper *= 2.0
    return 1.0 / float(brentq(slope, 0.0, upper, xtol=1e-12, rtol=1e-12))


# --- several rewards together -------------------------------------------------------------------


def _combination(data: LabelledRows, method: Method, maps: Sequence[RewardMap]) -> Combination:
    if data.labels is None or method == "z_score":
        raise InvalidRequest("A joint combination needs labels and rewards on a scale from 0 to 1.")
    _check_labels(data.labels, "labels")
    labels = data.labels
    if len(maps) < 2:
        raise InvalidRequest("A joint combination needs two rewards or more.")
    curves = [entry.curve for entry in maps]
    weights = _weights(_columns(curves, data.rewards, maps), labels)
    predicted = np.empty(len(labels))
    for held_out in folds(data.groups):
        rows = np.flatnonzero(~held_out)
        part = LabelledRows({name: values[rows] for name, values in data.rewards.items()}, labels[rows], ())
        refitted = [_curve(entry.name, part, method) for entry in maps]
        learned = _weights(_columns(refitted, part.rewards, maps), labels[rows])
        predicted[held_out] = _columns(refitted, data.rewards, maps)[held_out] @ learned
    named = {entry.name: weight for entry, weight in zip(maps, weights.tolist(), strict=True)}
    return Combination(weights=named, ece_after=_error(predicted, labels, data.groups))


def _curve(name: str, data: LabelledRows, method: Method) -> PiecewiseLinear:
    values = data.rewards[name]
    return _isotonic(values, _labels(data)) if method == "isotonic" else _SCALES[method](values)


def _columns(
    curves: Sequence[PiecewiseLinear | Logistic], rewards: Mapping[str, Floats], maps: Sequence[RewardMap]
) -> Floats:
    return np.stack([curve.apply(rewards[entry.name]) for curve, entry in zip(curves, maps, strict=True)], axis=1)


def _weights(columns: Floats, labels: Floats) -> Floats:
    """Non-negative least squares (Lawson & Hanson 1974) of weights that add up to 1, so that [0, 1] stays [0, 1]."""
    from scipy.optimize import nnls

    firm = 1e3 * np.sqrt(len(labels))
    rows = np.vstack([columns, np.full((1, columns.shape[1]), firm)])
    weights, _ = nnls(rows, np.append(labels, firm))
    rounded: Floats = np.round(weights / weights.sum(), 6)
    rounded[np.argmax(rounded)] += 1.0 - rounded.sum()
    return np.round(rounded, 6)


# --- folds and errors ---------------------------------------------------------------------------


def folds(groups: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Masks (n,) of the rows held out in each fold; a dialogue is in one fold whole, told by its name alone."""
    names, place = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    keys = [hashlib.sha256(str(name).encode("utf-8", "replace")).digest() for name in names]
    rank = np.argsort(np.argsort(np.array(keys, dtype="S32"))) % FOLDS
    return [mask for fold in range(FOLDS) if (mask := rank[place] == fold).any() and not mask.all()]


def _cross_fitted(
    groups: Sequence[str], fitted: Callable[[NDArray[np.intp]], Callable[[Floats], Floats]], values: Floats
) -> Floats:
    masks = folds(groups)
    if not masks:
        raise InvalidRequest("All rows are of one dialogue: there must be several.")
    predicted = np.empty(len(values))
    for held_out in masks:
        predicted[held_out] = fitted(np.flatnonzero(~held_out))(values[held_out])
    return predicted


def _error(predicted: Floats, observed: Floats, groups: Sequence[str]) -> Error:
    error = calibration_error(predicted, observed, groups)
    return Error(value=round(error.value, 6), low=round(error.low, 6), high=round(error.high, 6))
