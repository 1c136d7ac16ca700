"""Heads with their uncertainty, ready to predict: a Gaussian over linear weights, or several of them.

The epistemic part of a prediction comes from having seen too little: it grows with the distance from the training
data, also in directions in which that did not vary at all. The noise part is that of the labels: more data does not
lower it. A row's prediction does not depend on the rows beside it. How heads are fitted is in `uncertainty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reward_server.errors import InvalidRequest, JudgeFailed

Floats = NDArray[np.float64]

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


@dataclass(frozen=True, slots=True)
class PosteriorPrediction:
    """The prediction of a posterior for n rows."""

    mean: Floats
    """(n,), in the units of the labels; of a preference head, log-odds."""
    epistemic_std: Floats
    """(n,), same units; never 0."""
    noise_std: Floats | None
    """(n,), same units; None for preferences, whose noise is the logistic itself."""

    @property
    def total_std(self) -> Floats:
        """(n,): of a label yet to be seen, so that coverage can be checked against labels."""
        noise = 0.0 if self.noise_std is None else self.noise_std
        return np.sqrt(self.epistemic_std**2 + noise**2)


class Posterior(Protocol):
    """A head with its uncertainty."""

    @property
    def width(self) -> int:
        """The number of features it takes."""

    def predict(self, features: ArrayLike) -> PosteriorPrediction:
        """Features (n, width) to n predictions; the same row gets the same numbers in any batch.

        Raises:
            JudgeFailed: the features have another width or are not finite.
        """


@dataclass(frozen=True, slots=True, eq=False)
class LinearPosterior:
    """A Gaussian over the weights of a linear head.

    Along each of `directions` (orthonormal) the weights vary by `variances`; in all others by `outside`, the
    variance of the prior, as the training data says nothing about them.
    """

    centre: Floats
    """(d,): subtracted from features."""
    scale: Floats
    """(d,): features are divided by it after that."""
    weights: Floats
    """(d,): posterior mean, for standardised features."""
    directions: Floats
    """(r, d)."""
    variances: Floats
    """(r,)."""
    outside: float
    bias: float = 0.0
    bias_variance: float = 0.0
    noise_variance: float | None = None

    @property
    def width(self) -> int:
        """The number of features it takes."""
        return int(self.weights.shape[0])

    def predict(self, features: ArrayLike) -> PosteriorPrediction:
        """Bishop, Pattern Recognition and Machine Learning, eq. 3.58-3.59, the variance in its two parts."""
        rows = _rows(features, self.width)
        standard = (rows - self.centre) / self.scale
        # Row by row: a matrix product may round a row differently in another batch.
        along = np.stack([self.directions @ row for row in standard]) if len(standard) else np.zeros((0, 0))
        inside = np.einsum("ij,j->i", along**2, self.variances) if along.size else np.zeros(len(standard))
        seen = np.einsum("ij->i", along**2) if along.size else np.zeros(len(standard))
        beyond = np.maximum(np.einsum("ij,ij->i", standard, standard) - seen, 0.0) * self.outside
        variance = np.maximum(inside + beyond + self.bias_variance, np.finfo(np.float64).tiny)
        mean = np.einsum("ij,j->i", standard, self.weights) + self.bias
        noise = None if self.noise_variance is None else np.full(len(rows), np.sqrt(self.noise_variance))
        return PosteriorPrediction(mean, np.sqrt(variance), noise)

    def probability(self, differences: ArrayLike) -> Floats:
        """(n,): that the first beats the second, of feature differences; MacKay 1992, eq. 10 (probit approximation)."""
        found = self.predict(differences)
        return sigmoid(found.mean / np.sqrt(1.0 + np.pi * found.epistemic_std**2 / 8.0))


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Heads fitted on resampled dialogues; they disagree where the data leaves it open."""

    members: tuple[LinearPosterior, ...]

    @property
    def width(self) -> int:
        """The number of features it takes."""
        return self.members[0].width

    def predict(self, features: ArrayLike) -> PosteriorPrediction:
        """Law of total variance: the spread between members and, not to be dropped, each member's own."""
        found = [member.predict(features) for member in self.members]
        means = np.stack([each.mean for each in found])
        within = np.stack([each.epistemic_std**2 for each in found]).mean(axis=0)
        noises = [each.noise_std**2 for each in found if each.noise_std is not None]
        noise = np.sqrt(np.stack(noises).mean(axis=0)) if noises else None
        return PosteriorPrediction(means.mean(axis=0), np.sqrt(means.var(axis=0, ddof=1) + within), noise)


def squashed(found: PosteriorPrediction) -> PosteriorPrediction:
    """Log-odds as probabilities in [0, 1] with their epistemic spread, by Gauss-Hermite quadrature; no noise part."""
    points = sigmoid(found.mean[:, None] + found.epistemic_std[:, None] * _NODES)
    weights = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
    mean = np.einsum("ij,j->i", points, weights)
    variance = np.einsum("ij,j->i", (points - mean[:, None]) ** 2, weights)
    return PosteriorPrediction(mean, np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny)), None)


# --- to and from plain arrays -------------------------------------------------------------------


def to_arrays(posterior: LinearPosterior | Ensemble, prefix: str = "") -> dict[str, Floats]:
    """Everything in it as float64 arrays, for safetensors; `tolist` makes JSON of them."""
    if isinstance(posterior, Ensemble):
        parts = [to_arrays(member, f"{prefix}member{n}.") for n, member in enumerate(posterior.members)]
        merged = {f"{prefix}members": np.array([float(len(parts))])}
        return merged | {name: values for part in parts for name, values in part.items()}
    noise = [] if posterior.noise_variance is None else [posterior.noise_variance]
    return {
        f"{prefix}centre": posterior.centre,
        f"{prefix}scale": posterior.scale,
        f"{prefix}weights": posterior.weights,
        f"{prefix}directions": np.ascontiguousarray(posterior.directions),
        f"{prefix}variances": posterior.variances,
        f"{prefix}scalars": np.array([posterior.outside, posterior.bias, posterior.bias_variance, *noise]),
    }


def from_arrays(arrays: Mapping[str, ArrayLike], prefix: str = "") -> LinearPosterior | Ensemble:
    """The inverse of `to_arrays`.

    Raises:
        InvalidRequest: an array is missing, misshapen or not finite.
    """
    if f"{prefix}members" in arrays:
        count = int(_stored(arrays, f"{prefix}members")[0])
        members = [from_arrays(arrays, f"{prefix}member{n}.") for n in range(count)]
        return Ensemble(tuple(member for member in members if isinstance(member, LinearPosterior)))
    centre, scale, weights, directions, variances, scalars = (
        _stored(arrays, prefix + name) for name in ("centre", "scale", "weights", "directions", "variances", "scalars")
    )
    width = weights.shape
    directions = directions.reshape(-1, *width) if not directions.size else directions
    fits = centre.shape == scale.shape == width and directions.shape == (*variances.shape, *width)
    if not fits or len(width) != 1 or scalars.shape not in ((3,), (4,)):
        raise InvalidRequest("The stored uncertainty of a head is damaged.")
    noise = float(scalars[3]) if len(scalars) == 4 else None
    outside, bias, bias_variance = (float(value) for value in scalars[:3])
    return LinearPosterior(centre, scale, weights, directions, variances, outside, bias, bias_variance, noise)


def _stored(arrays: Mapping[str, ArrayLike], name: str) -> Floats:
    found = np.asarray(arrays[name], dtype=np.float64) if name in arrays else None
    if found is None or not np.isfinite(found).all():
        raise InvalidRequest("The stored uncertainty of a head is damaged.")
    return found


def _rows(features: ArrayLike, width: int) -> Floats:
    rows = np.ascontiguousarray(features, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
        raise JudgeFailed
    return rows


def sigmoid(values: Floats) -> Floats:
    """The logistic function, without overflow."""
    result: Floats = 0.5 * (1.0 + np.tanh(0.5 * values))
    return result
