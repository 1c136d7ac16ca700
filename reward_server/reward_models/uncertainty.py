"""Fits heads that know how sure they are: Bayesian ridge, Laplace preferences.

Everything is closed form or a convex fit, in float64, deterministic; only the bootstrap draws, from a seed. What a
fit returns and what its two uncertainties mean is in `posterior`. Knows neither texts nor files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reward_server.errors import InvalidRequest
from reward_server.reward_models.posterior import (
    Ensemble,
    Floats,
    LinearPosterior,
    Posterior,
    PosteriorPrediction,
    from_arrays,
    sigmoid,
    squashed,
    to_arrays,
)
from reward_server.reward_models.scatter import Scatter

__all__ = [
    "Ensemble",
    "LinearPosterior",
    "Posterior",
    "PosteriorPrediction",
    "Precisions",
    "fit_preferences",
    "fit_ridge",
    "from_arrays",
    "laplace_at",
    "laplace_of_many",
    "squashed",
    "to_arrays",
]

Indices = NDArray[np.intp]

MIN_ROWS = 8
"""Fewer rows fit no head."""
MIN_GROUPS = 4
"""Fewer dialogues make no bootstrap."""
_LEAST_EXPLAINED = 0.01
"""The prior always allows the features to explain this share of the label variance. Without it a fit that finds no
signal would be certain that there is none anywhere, and nothing would be out of distribution."""
_LEAST_NOISE = 1e-6
"""Noise variance as a share of the label variance: what a perfect fit is held to."""
_ROUNDS = 500
_PRECISIONS = tuple(10.0 ** (half / 2) for half in range(8, -5, -1))
"""Prior precisions tried for preferences, strongest first, so that each fit starts near the next."""


@dataclass(frozen=True, slots=True)
class Precisions:
    """Inverse variances of a ridge: of the weights before any data, and of the labels around the line."""

    prior: float
    noise: float


def fit_ridge(
    features: ArrayLike,
    targets: ArrayLike,
    emphasis: ArrayLike | None = None,
    *,
    precisions: Precisions | None = None,
) -> LinearPosterior:
    """Bayesian ridge: features (n, d), targets (n,); both precisions from the evidence unless they are given.

    MacKay, Bayesian Interpolation, Neural Computation 4 (1992); the fixed point is Bishop eq. 3.91-3.95. Features are
    standardised; the intercept has a flat prior. `emphasis` (d,) stretches the standardised features: the prior lets
    a head use them more freely.

    Raises:
        InvalidRequest: too few rows, values that are not finite, or labels that are all the same.
    """
    rows, labels = _training_rows(features), _vector(targets, "labels")
    _same_length(rows, labels, "labels")
    spread = float(labels.var())
    if spread <= 1e-18 * max(1.0, float(np.abs(labels).max()) ** 2):
        raise InvalidRequest("All labels are the same: there is nothing to learn from them.")
    centre, scale = rows.mean(axis=0), _scale(rows.std(axis=0), emphasis)
    standard, centred = (rows - centre) / scale, labels - labels.mean()
    directions, strengths = _directions(standard)
    if not len(directions):
        raise InvalidRequest("All rows have the same features: there is nothing to learn from them.")
    along = directions @ (standard.T @ centred)
    power = float(strengths.sum()) / len(rows)
    found = precisions or _evidence(along, strengths, centred, most=power / (_LEAST_EXPLAINED * spread))
    prior, precision = found.prior, found.noise
    weights = directions.T @ (precision * along / (prior + precision * strengths))
    return LinearPosterior(
        centre=centre,
        scale=scale,
        weights=weights,
        directions=directions,
        variances=1.0 / (prior + precision * strengths),
        outside=1.0 / prior,
        bias=float(labels.mean()),
        bias_variance=1.0 / (precision * len(rows)),
        noise_variance=1.0 / precision,
    )


def _evidence(along: Floats, strengths: Floats, centred: Floats, most: float) -> Precisions:
    """The precisions at which the evidence is largest, in the basis that makes both diagonal."""
    n, total = len(centred), float(centred @ centred)
    least_noise = _LEAST_NOISE * total / n
    prior, precision = min(1.0, most), n / total
    for _ in range(_ROUNDS):
        weights = precision * along / (prior + precision * strengths)
        known = float((precision * strengths / (prior + precision * strengths)).sum())
        residual = max(total - 2.0 * float(weights @ along) + float(weights**2 @ strengths), 0.0)
        squares = float(weights @ weights)
        next_prior = min(known / squares, most) if squares * most > known else most
        # One degree of freedom went into the mean of the labels.
        next_precision = 1.0 / max(residual / max(n - 1.0 - known, 1.0), least_noise)
        settled = abs(next_prior / prior - 1.0) + abs(next_precision / precision - 1.0) < 1e-8
        prior, precision = next_prior, next_precision
        if settled:
            break
    return Precisions(prior, precision)


def fit_preferences(
    differences: ArrayLike,
    outcomes: ArrayLike | None = None,
    prior_precision: float | None = None,
    emphasis: ArrayLike | None = None,
) -> LinearPosterior:
    """Bradley-Terry with a linear utility, and the Laplace approximation around its optimum.

    `differences` (n, d) are features of the first minus features of the second; `outcomes` (n,) is 1 where the first
    won, 0 where the second did, 0.5 for a tie (default: all 1). There is no intercept, so that swapping sides swaps the
    outcome. The prior precision is the one of the largest Laplace evidence (Daxberger et al. 2021), unless given;
    `emphasis` is that of `fit_ridge`.

    Raises:
        InvalidRequest: too few pairs, values that are not finite, outcomes outside of [0, 1], no difference at all.
    """
    rows = _training_rows(differences)
    wins = np.ones(len(rows)) if outcomes is None else _vector(outcomes, "outcomes")
    _same_length(rows, wins, "outcomes")
    if wins.min() < 0.0 or wins.max() > 1.0:
        raise InvalidRequest("Outcomes of pairs must lie between 0 and 1.")
    # Around 0, not around the mean: equal sides must stay a tie.
    scale = _scale(np.sqrt((rows**2).mean(axis=0)), emphasis)
    directions, _ = _directions(rows / scale)
    if not len(directions):
        raise InvalidRequest("The two sides of all pairs have the same features: there is nothing to learn.")
    along = (rows / scale) @ directions.T
    start = np.zeros(along.shape[1])
    best: tuple[float, float, Floats] | None = None
    for prior in _PRECISIONS if prior_precision is None else (prior_precision,):
        start = _optimum(along, wins, prior, start)
        evidence = _laplace_evidence(along, wins, prior, start)
        if best is None or evidence > best[0]:
            best = (evidence, prior, start)
    _, prior, found = best if best is not None else (0.0, 1.0, start)
    return _laplace(scale, directions, along, found, prior)


def laplace_at(weights: ArrayLike, differences: ArrayLike, prior_precision: float) -> LinearPosterior:
    """The Laplace approximation around the weights (d,) of a preference head that was trained elsewhere.

    Raises:
        InvalidRequest: as of `fit_preferences`, or a precision that is not positive.
    """
    rows, head = _training_rows(differences), _vector(weights, "weights")
    if head.shape[0] != rows.shape[1]:
        raise InvalidRequest("The head and the features have different widths.")
    if not prior_precision > 0.0:
        raise InvalidRequest("The prior precision must be greater than 0.")
    directions, _ = _directions(rows)
    along = rows @ directions.T
    around = _laplace(np.ones(len(head)), directions, along, directions @ head, prior_precision)
    return replace(around, weights=head)


def laplace_of_many(
    weights: ArrayLike, differences: Iterable[Floats], prior_precision: float, most: int, varies: NDArray[np.bool_]
) -> LinearPosterior:
    """`laplace_at` for rows that come a few at a time, with at most so many directions: those of largest curvature.

    The others count as unseen, which makes the uncertainty a little larger. `varies` (d,) are the features that are not
    0 in all rows. The rows are used up.
    """
    head = _vector(weights, "weights")
    curvature = Scatter(varies)
    for rows in differences:
        chance = sigmoid(rows @ head)
        curvature.add(np.multiply(rows, np.sqrt(chance * (1.0 - chance))[:, None], out=rows))
    directions, strengths = curvature.strongest(most)
    return LinearPosterior(
        centre=np.zeros_like(head),
        scale=np.ones_like(head),
        weights=head,
        directions=directions,
        variances=1.0 / (prior_precision + strengths),
        outside=1.0 / prior_precision,
    )


def _laplace(scale: Floats, directions: Floats, along: Floats, weights: Floats, prior: float) -> LinearPosterior:
    """Turn the basis so that the curvature at `weights` is diagonal."""
    curvature, turn = np.linalg.eigh(_hessian(along, weights))
    return LinearPosterior(
        centre=np.zeros_like(scale),
        scale=scale,
        weights=directions.T @ weights,
        directions=turn.T @ directions,
        variances=1.0 / (prior + np.maximum(curvature, 0.0)),
        outside=1.0 / prior,
    )


def _optimum(along: Floats, wins: Floats, prior: float, start: Floats) -> Floats:
    """Newton's method with step halving on a strictly convex loss."""
    weights, loss = start, _loss(along, wins, prior, start)
    for _ in range(100):
        gradient = along.T @ (sigmoid(along @ weights) - wins) + prior * weights
        step = np.linalg.solve(_hessian(along, weights) + prior * np.eye(len(weights)), gradient)
        size = 1.0
        while (moved := _loss(along, wins, prior, weights - size * step)) > loss and size > 1e-6:
            size /= 2.0
        if moved > loss:
            break
        weights, gained, loss = weights - size * step, loss - moved, moved
        if gained <= 1e-10 * (1.0 + abs(loss)):
            break
    return weights


def _loss(along: Floats, wins: Floats, prior: float, weights: Floats) -> float:
    utility = along @ weights
    return float((np.logaddexp(0.0, utility) - wins * utility).sum() + 0.5 * prior * (weights @ weights))


def _hessian(along: Floats, weights: Floats) -> Floats:
    chance = sigmoid(along @ weights)
    hessian: Floats = (along * (chance * (1.0 - chance))[:, None]).T @ along
    return hessian


def _laplace_evidence(along: Floats, wins: Floats, prior: float, weights: Floats) -> float:
    """Log evidence up to a constant; directions without data cancel out."""
    width = len(weights)
    _, determinant = np.linalg.slogdet(_hessian(along, weights) + prior * np.eye(width))
    return -_loss(along, wins, prior, weights) + 0.5 * width * float(np.log(prior)) - 0.5 * float(determinant)


# --- arrays in ----------------------------------------------------------------------------------


def _training_rows(features: ArrayLike) -> Floats:
    rows = np.ascontiguousarray(features, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < MIN_ROWS or not rows.shape[1]:
        raise InvalidRequest(f"Too little data: a head needs {MIN_ROWS} rows or more.")
    if not np.isfinite(rows).all():
        raise InvalidRequest("Features must be finite numbers.")
    return rows


def _vector(values: ArrayLike, what: str) -> Floats:
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InvalidRequest(f"The {what} must be finite numbers, one per row.")
    return vector


def _same_length(rows: Floats, values: Floats, what: str) -> None:
    if len(rows) != len(values):
        raise InvalidRequest(f"There are {len(rows)} rows but {len(values)} {what}.")


def _scale(spread: Floats, emphasis: ArrayLike | None = None) -> Floats:
    """Columns that did not vary stay as they are, so that a change in them counts as unseen."""
    scale = np.where(spread > 1e-9, spread, 1.0)
    if emphasis is None:
        return scale
    stretch = _vector(emphasis, "emphasis")
    if stretch.shape != spread.shape or not (stretch > 0.0).all():
        raise InvalidRequest("The emphasis must be a positive number per feature.")
    return np.asarray(scale / stretch)


def _directions(standard: Floats) -> tuple[Floats, Floats]:
    """Orthonormal directions (r, d) in which rows vary, and the sum of squares (r,) along each."""
    n, d = standard.shape
    strengths, basis = np.linalg.eigh(standard.T @ standard if n >= d else standard @ standard.T)
    kept = strengths > 1e-10 * max(float(strengths[-1]), 1e-30)
    strengths, basis = strengths[kept], basis[:, kept]
    if n < d:
        basis = (standard.T @ basis) / np.sqrt(strengths)
    return np.ascontiguousarray(basis.T), strengths
