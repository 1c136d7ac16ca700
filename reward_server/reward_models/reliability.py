"""Is a number as sure as it says: coverage of intervals, risk against coverage, calibration error.

Figures for reports, each with an interval where chance plays a part. Resampling draws whole dialogues from a seed;
everything else is arithmetic and independent of the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reward_server.errors import InvalidRequest

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS = 10
DRAWS = 1000
_MASS = 0.95


@dataclass(frozen=True, slots=True)
class FigureInterval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of labels inside the central interval of a level; it should equal the level."""

    level: float
    share: FigureInterval
    n: int


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The mean error over the most certain part of the rows, from the most certain one to all.

    Geifman & El-Yaniv 2017. The area under it is AURC: that of a useful uncertainty lies below `random`, the mean
    error, and no uncertainty gets below `oracle`, which sorts by the error itself.
    """

    coverage: Floats
    """(n,): 1/n to 1."""
    risk: Floats
    """(n,)."""
    aurc: float
    random: float
    oracle: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows of about the same prediction."""

    n: int
    predicted: float
    observed: float


def coverage(mean: Floats, std: Floats, targets: Floats, levels: Sequence[float] = LEVELS) -> tuple[Coverage, ...]:
    """Per level the share of targets inside mean +- z std, with its exact interval (Clopper & Pearson 1934)."""
    from scipy.stats import norm

    _finite(mean, std, targets)
    found = []
    for level in levels:
        inside = int((np.abs(targets - mean) <= norm.ppf(0.5 + level / 2) * std).sum())
        found.append(Coverage(level, binomial(inside, len(targets)), len(targets)))
    return tuple(found)


def binomial(hits: int, n: int) -> FigureInterval:
    """A share of n with its exact 95 % interval."""
    from scipy.stats import beta

    tail = (1 - _MASS) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(1 - tail, hits + 1, n - hits))
    return FigureInterval(hits / n, low, high)


def risk_coverage(uncertainty: Floats, errors: Floats) -> RiskCoverage:
    """The curve of errors (n,) when rows are kept by rising uncertainty (n,); equal ones count as drawn at random."""
    _finite(uncertainty, errors)
    n = len(errors)
    risk, best = _running(uncertainty, errors), _running(errors, errors)
    shares = np.arange(1, n + 1) / n
    return RiskCoverage(shares, risk, float(risk.mean()), float(errors.mean()), float(best.mean()))


def less_random(uncertainty: Floats, errors: Floats) -> float:
    """AURC less the mean error, which is that of a random order: below 0 where the uncertainty (n,) sorts errors (n,).

    On its own, so that resamples need not sort by the error, too.
    """
    return float(_running(uncertainty, errors).mean() - errors.mean())


def _running(by: Floats, errors: Floats) -> Floats:
    order = np.argsort(by, kind="stable")
    _, starts, counts = np.unique(by[order], return_index=True, return_counts=True)
    means = np.add.reduceat(errors[order], starts) / counts
    running: Floats = np.cumsum(np.repeat(means, counts)) / np.arange(1, len(errors) + 1)
    return running


def gaussian_nll(mean: Floats, std: Floats, targets: Floats) -> float:
    """Mean negative log likelihood of the targets, in nats."""
    _finite(mean, std, targets)
    return float((0.5 * np.log(2 * np.pi * std**2) + (targets - mean) ** 2 / (2 * std**2)).mean())


def sharpness(std: Floats) -> float:
    """The mean standard deviation: of two calibrated predictions the sharper one says more (Gneiting et al. 2007)."""
    return float(std.mean())


def equal_mass_bins(predicted: Floats, observed: Floats, bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of about equal size by rising prediction (n,); equal predictions always share a bin."""
    means = _means(_ties(predicted), predicted, observed, bins)
    return tuple(Bin(int(n), float(p), float(o)) for n, p, o in zip(*means, strict=True))


def expected_calibration_error(predicted: Floats, observed: Floats, bins: int = BINS) -> float:
    """Mean distance of prediction and outcome over equal-mass bins (Naeini et al. 2015; Nixon et al. 2019)."""
    return _mean_distance(_ties(predicted), predicted, observed, bins)


def calibration_error(predicted: Floats, observed: Floats, groups: Sequence[str], bins: int = BINS) -> FigureInterval:
    """ECE with its interval."""
    _finite(predicted, observed)
    # Which predictions are equal, and their order, are the same in every resample: found once, not a thousand times.
    ties = _ties(predicted)
    value = _mean_distance(ties, predicted, observed, bins)
    drawn = resampled(lambda rows: _mean_distance(ties[rows], predicted[rows], observed[rows], bins), groups)
    return spread_around(value, drawn)


def spread_around(value: float, drawn: Floats) -> FigureInterval:
    """The 95 % interval of a distance, such as ECE: the spread of its resamples (draws,), put around the estimate.

    Chance adds to a mean distance, and a resample has chance twice: resamples lie above the estimate, so that it may
    be outside of their own quantiles.
    """
    low, high = np.quantile(drawn - drawn.mean() + value, [(1 - _MASS) / 2, (1 + _MASS) / 2])
    return FigureInterval(value, max(0.0, min(float(low), value)), max(float(high), value))


def bootstrap(statistic: Callable[[Indices], float], groups: Sequence[str], draws: int = DRAWS) -> FigureInterval:
    """A statistic of all rows with its percentile interval over resampled dialogues; undefined draws do not count."""
    value = statistic(np.arange(len(groups)))
    drawn = resampled(statistic, groups, draws)
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return FigureInterval(value, value, value)
    low, high = np.quantile(drawn, [(1 - _MASS) / 2, (1 + _MASS) / 2])
    return FigureInterval(value, float(low), float(high))


def resampled(
    statistic: Callable[[Indices], float], groups: Sequence[str], draws: int = DRAWS, seed: int = 0
) -> Floats:
    """(draws,): the statistic over rows of dialogues drawn with replacement."""
    names, place = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    order = np.argsort(place, kind="stable")
    own = np.split(order, np.cumsum(np.bincount(place))[:-1])
    generator = np.random.default_rng(seed)
    alone = len(own) == len(groups)
    found = np.empty(draws)
    for draw in range(draws):
        drawn = generator.integers(0, len(names), len(names))
        found[draw] = statistic(order[drawn] if alone else np.concatenate([own[index] for index in drawn]))
    return found


def _ties(values: Floats) -> Indices:
    """The place of each value (n,) among the different ones in rising order: equal values share it."""
    ties: Indices = np.unique(values, return_inverse=True)[1]
    return ties


def _means(ties: Indices, predicted: Floats, observed: Floats, bins: int) -> tuple[Indices, Floats, Floats]:
    """Of each bin that is not empty: its size and the means of prediction and outcome."""
    place = _bin_of(ties, bins)
    counts = np.bincount(place, minlength=bins)
    kept = counts > 0
    sizes = counts[kept]
    sums = (np.bincount(place, weights=values, minlength=bins)[kept] for values in (predicted, observed))
    mean_predicted, mean_observed = (each / sizes for each in sums)
    return sizes, mean_predicted, mean_observed


def _mean_distance(ties: Indices, predicted: Floats, observed: Floats, bins: int) -> float:
    sizes, mean_predicted, mean_observed = _means(ties, predicted, observed, bins)
    distances: list[float] = (sizes * np.abs(mean_predicted - mean_observed)).tolist()
    return sum(distances) / len(predicted)


def _bin_of(ties: Indices, bins: int) -> Indices:
    """The bin of each value by its mid-rank, which equal values share; places that nothing has are no values."""
    counts = np.bincount(ties)
    middle = np.cumsum(counts) - (counts + 1) / 2
    place: Indices = np.minimum((middle / len(ties) * bins).astype(np.intp), bins - 1)[ties]
    return place


def _finite(*arrays: Floats) -> None:
    if not all(len(array) == len(arrays[0]) > 0 and np.isfinite(array).all() for array in arrays):
        raise InvalidRequest("Predictions and labels must be finite numbers, as many of the one as of the other.")
