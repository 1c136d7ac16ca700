"""The freedom of a head to use each kind of feature, learned from the rows it will be fitted on.

With a few hundred rows and one penalty for all, thousands of directions of meaning drown a few telling counts, or the
other way round: which kind tells more differs from task to task. So each kind gets a prior variance of its own, the
one of the largest evidence (automatic relevance determination per group: MacKay 1994; Neal 1996), held near the
featuriser's own emphasis by a log-normal prior. Only training rows are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from reward_server.reward_models.feature_rows import picked
from reward_server.reward_models.heads import Exact, Matrix
from reward_server.reward_models.matrices import ExampleMatrices, moments

METHOD = "emphasis/1"
SPREAD = 1.0
"""Of the log prior variance of a kind around the featuriser's. Chosen among .5, 1, 2 and 4 with heads fitted on 150 and
400 pairs of hh, where it made no difference, and on 300 replies of MRBench, where the mean AUC rose."""
MOST_ROWS = 600
"""Rows whose evidence is asked; it takes the cube of their number."""
MIN_ROWS = 16
_ROUNDS = 60
_STEP = 0.1
"""To which log variances are rounded, so that the last bits of a sum decide nothing."""


@dataclass(frozen=True, slots=True)
class EmphasisRows:
    """Rows with what a linear head without intercept should make of them."""

    rows: Exact
    """Standardised, shape (n, width)."""
    targets: Exact
    """Of mean square about 1, shape (n,)."""

    @property
    def thinned(self) -> EmphasisRows:
        """At most MOST_ROWS of them, evenly spaced."""
        few = _thinned(len(self.rows))
        return EmphasisRows(self.rows[few], self.targets[few])


def _thinned(count: int) -> slice:
    return slice(None, None, max(1, -(-count // MOST_ROWS)))


def learned_emphasis(train: ExampleMatrices, emphasis: Matrix, kinds: NDArray[np.intp]) -> Matrix:
    """The featuriser's emphasis (width,) times a factor per kind; `kinds` (width,) numbers the kinds from 0.

    Labels of the overall head and preferences count together, each with a noise of its own. What cannot be told from
    so few rows stays as it was. Rows of standardised features stay as long as they were on average, so that the same
    penalties fit.
    """
    _, spread = moments(train.parts)
    scale = np.where(spread < 1e-6, np.inf, spread) / emphasis.astype(np.float64)
    known = np.isfinite(train.labels[:, 0])
    labels = train.labels[known, 0].astype(np.float64)
    parts = []
    if len(labels) and labels.std() > 1e-6:
        own, few = picked(train.features, np.flatnonzero(known)), _thinned(len(labels))
        rows = (own[few].astype(np.float64) - moments([own])[0]) / scale
        parts.append(EmphasisRows(rows, ((labels - labels.mean()) / labels.std())[few]))
    if len(train.chosen):
        few = _thinned(len(train.chosen))
        differences = (train.chosen[few].astype(np.float64) - train.rejected[few].astype(np.float64)) / scale
        parts.append(EmphasisRows(differences, 2.0 * train.targets[few].astype(np.float64) - 1.0))
    learned = emphasis.astype(np.float64) * factors(parts, kinds)[kinds]
    varies = np.isfinite(scale)
    if not varies.any():
        return emphasis
    size = np.linalg.norm(emphasis[varies].astype(np.float64)) / np.linalg.norm(learned[varies])
    return np.asarray(learned * size, dtype=np.float32)


def factors(parts: Sequence[EmphasisRows], kinds: NDArray[np.intp]) -> Exact:
    """The factors for the standardised features of each kind, shape (kinds,), for heads with one penalty.

    Gaussian evidence, preferences as targets of 1 (least-squares classification: Rasmussen & Williams 2006, ch. 6.5),
    which is enough to set a prior by.
    """
    count = int(kinds.max()) + 1
    products = []
    for part in (part_rows.thinned for part_rows in parts if len(part_rows.rows) >= MIN_ROWS):
        own = np.stack([part.rows[:, kinds == kind] @ part.rows[:, kinds == kind].T for kind in range(count)])
        size = float(np.einsum("kii->", own)) / len(part.rows)
        if size > 0.0:
            products.append((own / size, part.targets))
    if count < 2 or not products:
        return np.ones(count)
    # Each part starts from a fifth of its variance explained.
    start = np.concatenate([np.tile(np.log([0.2, 0.8]), len(products)), np.zeros(count)])
    bounds = [(-8.0, 4.0), (-6.0, 2.0)] * len(products) + [(-6.0, 6.0)] * count
    best = minimize(_loss, start, (products,), method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": _ROUNDS})
    logs = np.round(best.x[-count:] / _STEP) * _STEP
    result: Exact = np.exp(0.5 * logs)  # of standard deviations
    return result


def _loss(point: Exact, products: Sequence[tuple[Exact, Exact]]) -> tuple[float, Exact]:
    """Minus the log evidence with the prior, and its gradient; per part a log amplitude and a log noise, then the
    kinds' log variances (Rasmussen & Williams 2006, eq. 5.8-5.9)."""
    first = 2 * len(products)
    logs = point[first:]
    loss = 0.5 * float(logs @ logs) / SPREAD**2
    slope = np.concatenate([np.zeros(first), logs / SPREAD**2])
    for place, (own, targets) in enumerate(products):
        shares, noise = np.exp(point[2 * place] + logs), float(np.exp(point[2 * place + 1]))
        covariance = np.einsum("k,kij->ij", shares, own) + noise * np.eye(len(targets))
        inverse = np.linalg.inv(covariance)
        explained = inverse @ targets
        _, determinant = np.linalg.slogdet(covariance)
        loss += 0.5 * float(targets @ explained) + 0.5 * float(determinant)
        curve = inverse - np.outer(explained, explained)
        slopes = 0.5 * shares * np.einsum("ij,kij->k", curve, own)
        slope[2 * place] = slopes.sum()
        slope[2 * place + 1] = 0.5 * noise * float(np.trace(curve))
        slope[first:] += slopes
    return loss, slope
