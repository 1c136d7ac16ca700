"""Agreement of judges: with each other, with people, and with themselves.

Pure statistics on columns of numbers; NaN where a figure is not defined, as when a judge says the same of everything.
Intervals draw whole dialogues and are in `reliability`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.reliability import Floats

MOST_LEVELS = 7
"""More different labels than this are a continuous scale, cut at the middle for kappa."""
TIE = 1e-9
"""Margins below are ties."""

Levels = NDArray[np.intp]


def levels_of(labels: Floats) -> Floats:
    """The levels of a scale of few labels, rising; of a continuous scale 0 and 1."""
    kinds = np.unique(labels)
    return kinds if len(kinds) <= MOST_LEVELS else np.array([0.0, 1.0])


def nearest(values: Floats, levels: Floats) -> Levels:
    """(n,): the index of the nearest level; of two equally near ones the lower."""
    found: Levels = np.abs(values[:, None] - levels[None, :]).argmin(axis=1)
    return found


def cohen_kappa(a: Levels, b: Levels, levels: int, *, quadratic: bool = False) -> float:
    """Agreement beyond chance of two raters (Cohen 1960), or with quadratic weights over the levels (Cohen 1968)."""
    counts = np.zeros((levels, levels))
    np.add.at(counts, (a, b), 1.0)
    counts /= counts.sum()
    rows, columns = np.indices(counts.shape)
    cost = ((rows - columns) / max(levels - 1, 1)) ** 2 if quadratic else (rows != columns).astype(np.float64)
    expected = float((cost * np.outer(counts.sum(axis=1), counts.sum(axis=0))).sum())
    return 1.0 - float((cost * counts).sum()) / expected if expected > 0 else float("nan")


def krippendorff_alpha(counts: Floats) -> float:
    """Agreement beyond chance of any number of raters, of whom not all rated everything (Krippendorff 1970, nominal).

    Args:
        counts: (units, levels), how many raters gave a unit each level; units of one rater say nothing.
    """
    rated = counts[counts.sum(axis=1) >= 2]
    if not len(rated):
        return float("nan")
    pairs = np.einsum("uc,uk->uck", rated, rated)
    levels = np.arange(rated.shape[1])
    pairs[:, levels, levels] -= rated
    together = (pairs / (rated.sum(axis=1) - 1.0)[:, None, None]).sum(axis=0)
    each = together.sum(axis=1)
    total = float(each.sum())
    expected = (total**2 - float((each**2).sum())) / (total - 1.0)
    observed = total - float(np.trace(together))
    return 1.0 - observed / expected if expected > 0 else float("nan")


def spearman(a: Floats, b: Floats) -> float:
    """Rank correlation with mean ranks for ties (Spearman 1904); NaN where one of them does not vary."""
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread > 0 else float("nan")


def pairwise_accuracy(margins: Floats, outcomes: Floats) -> float:
    """Share of pairs with a human winner (1 or 0) whose winner leads; a judge's tie is half right. NaN without any."""
    decided = outcomes != 0.5
    if not decided.any():
        return float("nan")
    says = np.where(np.abs(margins) < TIE, 0.5, (margins > 0).astype(np.float64))[decided]
    return float(1.0 - np.abs(says - outcomes[decided]).mean())


def position_consistency(first: Sequence[str], swapped: Sequence[str]) -> float:
    """Share of pairs of which a judge says the same in both orders; both name the sides as they were at first."""
    same = [a == b for a, b in zip(first, swapped, strict=True)]
    return sum(same) / len(same) if same else float("nan")


def repeat_std(repeats: Floats) -> float:
    """Pooled standard deviation of k scores each of n conversations, (n, k): a judge's own noise."""
    return float(np.sqrt(repeats.var(axis=1, ddof=1).mean()))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: Floats = np.cumsum(counts) - (counts - 1) / 2.0
    return middle[inverse]
