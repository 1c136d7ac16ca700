"""Agreement of rewards with the winners that people named; every figure with its 95 % interval over groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from reward_server.reward_models.agreement import (
    TIE,
    Levels,
    cohen_kappa,
    krippendorff_alpha,
    nearest,
    pairwise_accuracy,
)
from reward_server.reward_models.reliability import Floats, Indices, bootstrap

Figure = dict[str, float]
Figures = dict[str, Any]
MIN_ROWS = 5
"""Fewer give no figure."""
WINNERS = {"a": 1.0, "b": 0.0, "tie": 0.5}
OUTCOMES = np.array(sorted(WINNERS.values()))


def of_people(winners: Sequence[float], groups: Sequence[str], values: Floats, by_unit: Floats) -> Figures:
    """Of labelled pairs: whether rewards name the winner that people name, and whether people do among themselves.

    Args:
        winners: of each pair, as in `WINNERS`.
        groups: of each pair; pairs of one group (a dialogue, say) are drawn together.
        values: rewards, first and second side of each pair in turn.
        by_unit: (comparisons, 3), how many people said b, tie and a of each.
    """
    outcomes = np.array(winners, dtype=np.float64)
    said, meant = (nearest(found, OUTCOMES) for found in (winners_named(values[0::2] - values[1::2]), outcomes))
    units = [str(number) for number in range(len(by_unit))]
    return pairs_of_judge(groups, values, outcomes) | defined(
        {
            "kappa": kappa_of(said, meant, len(OUTCOMES), groups),
            "alpha": figure_of(lambda rows: krippendorff_alpha(by_unit[rows]), units),
        }
    )


def pairs_of_judge(groups: Sequence[str], values: Floats, outcomes: Floats) -> Figures:
    """Of labelled pairs, first and second side in turn: how often the scores name the winner, and how often none."""
    margins = values[0::2] - values[1::2]
    known = np.isfinite(margins)
    a, b = margins[known], outcomes[known]
    own = [group for group, is_known in zip(groups, known, strict=True) if is_known]
    found: Figures = defined({"accuracy": figure_of(lambda rows: pairwise_accuracy(a[rows], b[rows]), own)})
    return found | {"ties": float((np.abs(a) < TIE).mean())} if len(a) else found


def winners_named(margins: Floats) -> Floats:
    """The winners that scores name, as in `WINNERS`; NaN where one side has no score."""
    named = np.where(np.abs(margins) < TIE, WINNERS["tie"], np.where(margins > 0, WINNERS["a"], WINNERS["b"]))
    return np.where(np.isfinite(margins), named, np.nan)


def figure_of(statistic: Callable[[Indices], float], groups: Sequence[str]) -> Figure | None:
    """A statistic with its 95 % interval over groups; None of too few."""
    if len(groups) < MIN_ROWS:
        return None
    found = bootstrap(statistic, groups)
    return {"value": found.value, "low": found.low, "high": found.high, "n": len(groups)}


def kappa_of(a: Levels, b: Levels, levels: int, groups: Sequence[str], *, quadratic: bool = False) -> Figure | None:
    """With `is_constant` where one of them always says the same: then it is 0, whatever the other says."""
    found = figure_of(lambda rows: cohen_kappa(a[rows], b[rows], levels, quadratic=quadratic), groups)
    if found is not None and 1 in (len(np.unique(a)), len(np.unique(b))):
        found["is_constant"] = True
    return found


def defined(found: Mapping[str, Figure | None]) -> Figures:
    """Without what is not defined: a judge that says the same of everything has no rank correlation."""
    return {name: figure for name, figure in found.items() if figure is not None and isfinite(figure["value"])}
