"""A head of preferences weighed together with plain measures of what joins a reply to its request.

The head has thousands of weights and a few hundred pairs, so the likeness of a reply to its request drowns in it. How
far the head and each measure are to be believed is learned from what the head said of pairs of other dialogues
(stacking: Wolpert 1992), with weights that are not negative: a measure that people's choices contradict gets none, and
the head is then as it was. The measures are features themselves, so the result is one linear head again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from reward_server.reward_models.feature_rows import blocks, picked
from reward_server.reward_models.heads import Exact, Heads
from reward_server.reward_models.matrices import ExampleMatrices

FOLDS = 4
MIN_PAIRS = 40
"""Judged pairs that four weights may be learned from."""
PENALTY = 1.0
"""Of the squared weights of standardised measures, beside a sum over pairs (decision 11)."""
HEAD = "head"
_FAINT = 1e-9


@dataclass(frozen=True)
class Weighed:
    """A head with the measures in it, and what each counts for, per standard deviation over pairs."""

    heads: Heads
    weights: Mapping[str, float]


def weighed(
    heads: Heads,
    rows: ExampleMatrices,
    groups: Sequence[str],
    *,
    judged: int,
    relations: Mapping[str, int],
    fitted: Callable[[ExampleMatrices, int], Heads],
) -> Weighed | None:
    """The head with `relations`, the places of features by name, weighed beside it.

    None where nothing would change: there are too few pairs, it learned from labels, or the measures get no weight.

    Args:
        heads: fitted on all pairs.
        rows: those pairs; the first `judged` are people's own, by which weights are learned.
        groups: the dialogue of each pair.
        relations: by name, features of which more should be better.
        fitted: fits a head on the pairs of all folds but one, whose number it is told.
    """
    known = {name: place for name, place in relations.items() if heads.varies[place]}
    if heads.link != "preference" or judged < MIN_PAIRS or not known:
        return None
    places = np.array(list(known.values()), dtype=np.intp)
    margins = _unseen(rows, groups, judged, fitted)
    measured = _differences(rows, judged, places)
    sizes = np.maximum([_size(margins), *(_size(column) for column in measured.T)], _FAINT)
    columns = np.column_stack([margins, measured]) / sizes
    found = weights_of(columns, rows.targets[:judged].astype(np.float64), rows.weights[:judged].astype(np.float64))
    if found[0] <= 0.0 or not found[1:].any():
        return None
    # In units of the head, so that its penalty and its doubt stay of the same size.
    shares = found[1:] / found[0] * sizes[0] / sizes[1:]
    weights = heads.weights.astype(np.float64)
    weights[0, places] += shares * heads.scale[places].astype(np.float64)
    shown = {HEAD: float(found[0])} | {name: float(each) for name, each in zip(known, found[1:], strict=True)}
    return Weighed(
        replace(heads, weights=weights.astype(np.float32)), {name: round(each, 3) for name, each in shown.items()}
    )


def _unseen(
    rows: ExampleMatrices, groups: Sequence[str], judged: int, fitted: Callable[[ExampleMatrices, int], Heads]
) -> Exact:
    """Of each judged pair, the margin of a head that did not see its dialogue, shape (judged,)."""
    fold = np.array([int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS for group in groups])
    margins = np.zeros(judged)
    for number in range(FOLDS):
        asked = np.flatnonzero(fold[:judged] == number)
        if len(asked):
            head = fitted(_some_of(rows, np.flatnonzero(fold != number)), number)
            better, worse = (head.raw(picked(side, asked))[:, 0] for side in (rows.chosen, rows.rejected))
            margins[asked] = better - worse
    return margins


def _some_of(rows: ExampleMatrices, places: NDArray[np.intp]) -> ExampleMatrices:
    return replace(
        rows,
        chosen=picked(rows.chosen, places),
        rejected=picked(rows.rejected, places),
        targets=rows.targets[places],
        weights=rows.weights[places],
    )


def _differences(rows: ExampleMatrices, judged: int, columns: NDArray[np.intp]) -> Exact:
    """Of these features the better side less the other, shape (judged, columns)."""
    first = np.arange(judged)
    sides = zip(blocks(picked(rows.chosen, first)), blocks(picked(rows.rejected, first)), strict=True)
    return np.concatenate([(one[:, columns].astype(np.float64) - other[:, columns]) for one, other in sides])


def _size(values: Exact) -> float:
    return float(np.sqrt(np.mean(values**2)))


def weights_of(columns: Exact, targets: Exact, weights: Exact) -> Exact:
    """Logistic regression of preferences without intercept, no weight below 0; ties count half."""
    counts = weights / weights.mean()

    def loss(point: Exact) -> tuple[float, Exact]:
        odds = columns @ point
        errors = 1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0))) - targets
        value = float(np.sum(counts * (np.logaddexp(0.0, odds) - targets * odds))) + PENALTY * float(point @ point)
        return value, columns.T @ (counts * errors) + 2.0 * PENALTY * point

    start = np.full(columns.shape[1], 0.1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * columns.shape[1])
    return np.asarray(found.x, dtype=np.float64)
