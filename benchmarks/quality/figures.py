"""Figures with their 95 % intervals, folds by dialogue, and what all tables share.

Intervals resample whole dialogues. Where a choice is made (a strength of regularisation), it is made inside the
training folds; what is reported was predicted by a head that never saw the dialogue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.reliability import FigureInterval, bootstrap

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

FOLDS = 5
NOT_KNOWN = "not known"


def fold_of(group: str, folds: int = FOLDS, salt: str = "") -> int:
    """The fold of a dialogue: by its hash, so the same in every process and whatever else is in the data."""
    return int(hashlib.sha256(f"{salt}\0{group}".encode("utf-8", "replace")).hexdigest(), 16) % folds


def folds_of(groups: Sequence[str], folds: int = FOLDS, salt: str = "") -> Iterator[tuple[Indices, Indices]]:
    """(training rows, held-out rows) per fold; folds are as equal in dialogues as they can be; a salt deals anew."""
    names = sorted(set(groups), key=lambda name: hashlib.sha256(f"{salt}{name}".encode("utf-8", "replace")).hexdigest())
    place = {name: number % folds for number, name in enumerate(names)}
    rows = np.array([place[group] for group in groups])
    for fold in range(folds):
        held_out = np.flatnonzero(rows == fold)
        if len(held_out):
            yield np.flatnonzero(rows != fold), held_out


def wins(margins: Floats) -> Floats:
    """1 where the better one got more, 1/2 for a tie, 0 otherwise."""
    return np.where(margins > 0, 1.0, np.where(margins < 0, 0.0, 0.5))


def share(values: Floats, groups: Sequence[str]) -> FigureInterval:
    """The mean of values (n,) with its interval over dialogues."""
    return bootstrap(lambda rows: float(values[rows].mean()), groups)


def auc(scores: Floats, labels: Floats) -> float:
    """Area under the ROC curve: the chance that a positive outscores a negative, ties counting half (Hanley 1982)."""
    positive = labels > 0.5
    count, others = int(positive.sum()), int((~positive).sum())
    if not count or not others:
        return float("nan")
    _, place, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2.0)[place]
    return float((ranks[positive].sum() - count * (count + 1) / 2.0) / (count * others))


def auc_of(scores: Floats, labels: Floats, groups: Sequence[str]) -> FigureInterval:
    """AUC with its interval over dialogues."""
    return bootstrap(lambda rows: auc(scores[rows], labels[rows]), groups, draws=400)


def macro_f1(found: Floats, labels: Floats) -> float:
    """The mean over both classes of the harmonic mean of precision and recall."""
    scores = []
    for wanted in (0.0, 1.0):
        hits = float(((found == wanted) & (labels == wanted)).sum())
        total = float((found == wanted).sum() + (labels == wanted).sum())
        scores.append(2.0 * hits / total if total else 0.0)
    return sum(scores) / 2.0


def beaten(value: FigureInterval, before: float) -> str:
    """How a figure stands to an earlier one of the same kind."""
    if round(value.value, 3) <= before:  # as both are shown
        return "no"
    return "yes" if value.low > before else "yes, inside the interval"
