"""Figures of a reward model on held-out rows, each with a 95 % interval that resamples whole dialogues.

Rows of one dialogue are not independent; resampling rows would give intervals that are too narrow (cluster bootstrap,
Field & Welsh 2007). A figure that is not defined (a constant has no rank correlation) is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from reward_server.reward_models.reliability import spread_around

Exact = NDArray[np.float64]
Statistic = Callable[[Exact, Exact], float | None]
RESAMPLES = 1000
BINS = 10
MIN_RESAMPLED = 3
"""Fewer groups than this make no resamples."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and its 95 % interval; no interval where there are too few groups to resample."""

    value: float
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, float]:
        """Rounded, without what is not known."""
        parts = {"value": self.value, "low": self.low, "high": self.high}
        return {name: _rounded(value) for name, value in parts.items() if value is not None}

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def _rounded(value: float) -> float:
    """To four places, or of small numbers four digits: errors of 0.00012 and 0.00008 differ. Beyond is only noise."""
    return round(value, 4 if abs(value) >= 0.1 or value == 0.0 else min(8, 3 - floor(log10(abs(value)))))


def mse(predicted: Exact, labels: Exact) -> float:
    """Mean squared error."""
    return float(np.mean((predicted - labels) ** 2))


def r2(predicted: Exact, labels: Exact) -> float | None:
    """Share of the labels' variance that is explained; None where the labels do not vary."""
    variance = float(np.var(labels))
    return 1.0 - mse(predicted, labels) / variance if variance > 1e-12 else None


def pearson(predicted: Exact, labels: Exact) -> float | None:
    """Linear correlation; None where one side does not vary."""
    a, b = predicted - predicted.mean(), labels - labels.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-12 else None


def spearman(predicted: Exact, labels: Exact) -> float | None:
    """Rank correlation, ties sharing their mean rank; None where one side does not vary."""
    return pearson(rankdata(predicted), rankdata(labels))


def pairwise(differences: Exact, targets: Exact) -> float | None:
    """Share of pairs put in the right order; a difference of 0 is half right, human ties are left out."""
    decided = targets != 0.5
    if not decided.any():
        return None
    signed = np.sign(differences[decided]) * np.where(targets[decided] > 0.5, 1.0, -1.0)
    return float(np.mean((signed + 1.0) / 2.0))


def auc(predicted: Exact, labels: Exact) -> float | None:
    """Area under the ROC curve of labels above the middle of the scale against the others; None without both.

    The chance that one of the former is rated above one of the latter, ties counting half (Hanley & McNeil 1982).
    """
    good = labels > 0.5
    count, others = int(good.sum()), int((~good).sum())
    if not count or not others:
        return None
    return float((rankdata(predicted)[good].sum() - count * (count + 1) / 2.0) / (count * others))


def ece(predicted: Exact, labels: Exact) -> float:
    """Expected calibration error: in ten bins of equal count, the mean distance of mean prediction and mean label."""
    bins = np.array_split(np.argsort(predicted, kind="stable"), min(BINS, len(predicted)))
    distances = [abs(float(predicted[rows].mean() - labels[rows].mean())) * len(rows) for rows in bins]
    return sum(distances) / len(predicted)


VALUE_STATISTICS: dict[str, Statistic] = {
    "r2": r2,
    "mse": mse,
    "spearman": spearman,
    "pearson": pearson,
    "auc": auc,
    "ece": ece,
}
PAIR_STATISTICS: dict[str, Statistic] = {"pairwise": pairwise}
DISTANCES: frozenset[Statistic] = frozenset({ece})
"""What chance only adds to: their resamples lie above them."""


@dataclass(frozen=True)
class Resamples:
    """The rows of each resample of whole groups; the same for every figure, so figures can be compared."""

    rows: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, groups: Sequence[str], seed: int = 0) -> Resamples:
        """Resamples of the rows' groups; none where there are too few of them."""
        places: dict[str, list[int]] = {}
        for place, group in enumerate(groups):
            places.setdefault(group, []).append(place)
        members = [np.array(rows, dtype=np.int64) for _, rows in sorted(places.items())]
        if len(members) < MIN_RESAMPLED:
            return cls(())
        source = np.random.default_rng(seed)
        draws = source.integers(0, len(members), size=(RESAMPLES, len(members)))
        return cls(tuple(np.concatenate([members[group] for group in draw]) for draw in draws))

    def figure(self, statistic: Statistic, predicted: Exact, labels: Exact) -> Figure | None:
        """The statistic with its percentile interval, of a distance the spread around it; None where not defined."""
        value = statistic(predicted, labels) if len(labels) else None
        if value is None:
            return None
        drawn = [statistic(predicted[rows], labels[rows]) for rows in self.rows]
        known = [value for value in drawn if value is not None]
        if len(known) < 0.9 * len(self.rows) or not known:
            return Figure(value)
        if statistic in DISTANCES:
            around = spread_around(value, np.array(known))
            return Figure(value, around.low, around.high)
        low, high = np.percentile(known, [2.5, 97.5])
        return Figure(value, float(low), float(high))

    def figures(self, statistics: dict[str, Statistic], predicted: Exact, labels: Exact) -> dict[str, Figure]:
        """All of them by name; what is not defined is missing."""
        measured = {name: self.figure(statistic, predicted, labels) for name, statistic in statistics.items()}
        return {name: figure for name, figure in measured.items() if figure is not None}


def human_ceiling(ratings: Sequence[Sequence[float]], groups: Sequence[str], seed: int = 0) -> dict[str, Figure]:
    """The agreement of one rater with the mean of the others, over rows with several raters: what a model can reach.

    The rater left out is drawn by row, so that no person's habits decide.
    """
    chosen = [(row, group) for row, group in zip(ratings, groups, strict=True) if len(row) >= 2]
    if len(chosen) < 3:
        return {}
    source = np.random.default_rng(seed)
    ones: list[float] = []
    others: list[float] = []
    for row, _ in chosen:
        place = int(source.integers(len(row)))
        ones.append(row[place])
        others.append(float(np.mean([label for i, label in enumerate(row) if i != place])))
    resamples = Resamples.of([group for _, group in chosen], seed)
    return resamples.figures({"spearman": spearman, "pearson": pearson}, np.array(ones), np.array(others))


def as_json(figures: dict[str, Figure]) -> dict[str, Any]:
    """Figures for a card."""
    return {name: figure.to_json() for name, figure in figures.items()}
