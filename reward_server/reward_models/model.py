"""A reward model ready to predict: the heads, and how sure the overall one is.

The two parts of the uncertainty are apart: `epistemic` falls with more data and grows away from it, `noise` is that of
the labels. They come from a posterior over the overall head in the space of standardised features (`uncertainty`);
where too few rows allowed one, or all labels are alike, both are unknown, which is not 0. Older models may hold an
ensemble of heads instead.

Neither is stated larger than the spread of the labels that were trained on: whoever knows nothing of a conversation but
where labels lie is no further off than that, and by the law of total variance no part of the spread exceeds the whole.
The linear model itself knows of no such limit, nor that values lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.feature_rows import FeatureRows, blocks, picked
from reward_server.reward_models.heads import Exact, Heads, Matrix
from reward_server.reward_models.leave_out import noise_left_out
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.posterior import (
    Ensemble,
    LinearPosterior,
    PosteriorPrediction,
    from_arrays,
    squashed,
    to_arrays,
)
from reward_server.reward_models.scatter import Scatter
from reward_server.reward_models.uncertainty import MIN_ROWS, laplace_at, laplace_of_many

UNCERTAINTY = "uncertainty.safetensors"
SPREAD = "label_spread"
LARGEST_STD = 0.5
"""Nothing that lies in [0, 1] can have a larger standard deviation (Popoviciu 1935)."""
MAX_DIRECTIONS = 256
"""Directions of the posterior that are kept: those the data says most about. The others count as unseen, which makes
the uncertainty a little larger, never smaller."""
FEW_ROWS = 2048
"""Of up to so many training rows all directions are found before some are kept. Of more, only those that are kept: the
rows and their directions in double precision would take more memory the more rows there are."""
ROWS_AT_ONCE = 128
"""Of many: beside the matrix of `Scatter` they stand several times in double precision, where a training takes most
memory (benchmarks/training_memory.py)."""


@dataclass(frozen=True)
class Predicted:
    """The predictions of a model for n conversations."""

    values: Exact
    """In [0, 1], shape (n, heads); the first is the overall one."""
    epistemic: Exact | None
    """Standard deviation of the overall value, shape (n,)."""
    noise: Exact | None
    """Standard deviation of a label around it, shape (n,)."""


@dataclass(frozen=True)
class RewardModel:
    """Heads with the posterior of the overall one, or with an ensemble around it."""

    heads: Heads
    posterior: LinearPosterior | Ensemble | None = None
    spread: float = LARGEST_STD
    """Standard deviation of the labels it was trained on; the largest that can be where that is not known."""

    def predict(self, features: FeatureRows) -> Predicted:
        """Values with their uncertainty; a row is the same in any batch."""
        return _together([self._predict(block) for block in blocks(features)] or [self._predict(features[:])])

    def margin_std(self, better: FeatureRows, worse: FeatureRows) -> Exact | None:
        """Epistemic standard deviation of the overall margin of n pairs (n,), in the units of the head.

        None where it is not known.
        """
        if self.posterior is None:
            return None
        sides = zip(blocks(better), blocks(worse), strict=True)
        found = [self.posterior.predict(_difference(self.heads, *side)).epistemic_std for side in sides]
        return np.concatenate(found) if found else np.zeros(0)

    def _predict(self, features: Matrix) -> Predicted:
        raw = self.heads.raw(features)
        values = self.heads.valued(raw)
        if self.posterior is None:
            return Predicted(values, None, None)
        found = self.posterior.predict(self.heads.earning(features))
        if self.heads.link == "preference":
            # Log-odds of winning become chances; the spread is carried along the same curve, at the point that was
            # earned: near 0 the curve is flat, and words that cost would lower the doubt.
            earned = self.heads.earned(features)[:, 0]
            odds = PosteriorPrediction(self.heads.sharpness * earned, self.heads.sharpness * found.epistemic_std, None)
            return Predicted(values, squashed(odds).epistemic_std, None)
        noise = None if found.noise_std is None else np.minimum(found.noise_std, self.spread)
        return Predicted(values, np.minimum(found.epistemic_std, self.spread), noise)


def with_uncertainty(
    heads: Heads,
    train: ExampleMatrices,
    validation: ExampleMatrices,
    l2: float,
    *,
    groups: Sequence[str] | None = None,
) -> RewardModel:
    """The heads with a last-layer Laplace posterior around them.

    None where there are too few rows, or where all labels to learn from are alike.

    Daxberger et al., Laplace Redux, 2021: the curvature of the training loss at the trained weights. For regression
    that is Bayesian ridge regression (Bishop, eq. 3.50-3.51) whose noise is the validation part's, not the smaller one
    of the rows that were fitted.
    Where the validation part has too few rows for that, and `groups` names the dialogue of each labelled training row,
    the noise is that of dialogues left out of the fit (`leave_out`), and not less than those few rows show.
    """
    if heads.link == "identity":
        return _of_labels(heads, train, validation, l2, groups=groups)
    if len(train.chosen) < MIN_ROWS:
        return RewardModel(heads)
    # The penalty of the mean loss, as the precision of a Gaussian prior beside the sum of the losses.
    prior = 2.0 * l2 * len(train.chosen) / heads.width
    sides = zip(blocks(train.chosen, ROWS_AT_ONCE), blocks(train.rejected, ROWS_AT_ONCE), strict=True)
    differences = (_difference(heads, better, worse) for better, worse in sides)
    if len(train.chosen) <= FEW_ROWS:
        found = laplace_at(heads.weights[0], np.concatenate(list(differences)), prior)
    else:
        found = laplace_of_many(heads.weights[0], differences, prior, MAX_DIRECTIONS, heads.varies)
    return RewardModel(heads, _stored(found))


def _of_labels(
    heads: Heads,
    train: ExampleMatrices,
    validation: ExampleMatrices,
    l2: float,
    *,
    groups: Sequence[str] | None,
) -> RewardModel:
    """A regressor with what is known of its doubt."""
    labels, checked = train.labels[:, 0].astype(np.float64), validation.labels[:, 0].astype(np.float64)
    known, held = np.flatnonzero(np.isfinite(labels)), np.flatnonzero(np.isfinite(checked))
    if len(known) < MIN_ROWS:
        return RewardModel(heads)
    strength = l2 * float(labels[known].var()) * len(known) / heads.width
    # Of labels that are alike the variance need not be 0 to the last bit, and no prior follows from it.
    if np.ptp(labels[known]) <= 0.0 or strength <= 0.0:
        return RewardModel(heads)
    spread = float(np.float32(labels[known].std())) or LARGEST_STD  # as it will be stored
    least = 0.0
    if len(held) < MIN_ROWS:
        if groups is None:
            return RewardModel(heads)
        every = heads.standardised(train.features[known])
        least = noise_left_out(every, labels[known], [groups[int(row)] for row in known], strength) or 0.0
        if least <= 0.0:
            return RewardModel(heads)
    rows, others = picked(train.features, known), picked(validation.features, held)
    errors = heads.raw(others)[:, 0] - checked[held]
    return RewardModel(heads, _stored(_around(heads, rows, others, errors, strength, least=least)), spread)


def _around(
    heads: Heads, rows: FeatureRows, others: FeatureRows, errors: Exact, strength: float, *, least: float
) -> LinearPosterior:
    """The posterior of ridge regression with this penalty; `strength` is the ratio of noise to prior variance.

    The noise variance is that of the errors on other rows, and never below `least`.
    """
    directions, squares = _directions(heads, rows)

    def posterior(noise: float) -> LinearPosterior:
        return LinearPosterior(
            centre=np.zeros(heads.width),
            scale=np.ones(heads.width),
            weights=heads.weights[0].astype(np.float64),
            directions=directions,
            variances=noise / (strength + squares),
            outside=noise / strength,
            bias=float(heads.bias[0]),
            bias_variance=noise / len(rows),
            noise_variance=noise,
        )

    if not len(others):
        return posterior(least)
    # Errors on rows that were not fitted are noise and epistemic variance together, and both grow with the noise.
    total = max(float(np.mean(errors**2)), 1e-12)
    around = posterior(total)
    stds = np.concatenate([around.predict(heads.earning(block)).epistemic_std for block in blocks(others)])
    epistemic = float(np.mean(stds**2))
    return posterior(max(total * total / (total + epistemic), least, 1e-12))


def _difference(heads: Heads, better: Matrix, worse: Matrix) -> Exact:
    found = heads.earning(better)
    found -= heads.earning(worse)
    return found


def _together(parts: Sequence[Predicted]) -> Predicted:
    if len(parts) == 1:
        return parts[0]

    def whole(known: list[Exact | None]) -> Exact | None:
        found = [each for each in known if each is not None]
        return np.concatenate(found) if found else None

    return Predicted(
        np.concatenate([part.values for part in parts]),
        whole([part.epistemic for part in parts]),
        whole([part.noise for part in parts]),
    )


def _directions(heads: Heads, rows: FeatureRows) -> tuple[Exact, Exact]:
    """Orthonormal directions (r, width) in which rows vary once standardised, and the sum of squares (r,) along each;
    of many rows the strongest."""
    if len(rows) > FEW_ROWS:
        scatter = Scatter(heads.varies)
        for block in blocks(rows, ROWS_AT_ONCE):
            scatter.add(heads.earning(block))
        return scatter.strongest(MAX_DIRECTIONS)
    _, singular, basis = np.linalg.svd(heads.earning(rows[:]), full_matrices=False)
    kept = singular > 1e-6 * max(float(singular[0]), 1e-12)
    return np.ascontiguousarray(basis[kept]), singular[kept] ** 2


def pack(model: RewardModel) -> dict[str, bytes]:
    """The files of an artefact that hold the uncertainty; none where it is not known."""
    if model.posterior is None:
        return {}
    arrays = {name: values.astype(np.float32) for name, values in to_arrays(model.posterior).items()}
    arrays[SPREAD] = np.array([model.spread], dtype=np.float32)
    packed: bytes = save({name: np.ascontiguousarray(values) for name, values in arrays.items()})
    return {UNCERTAINTY: packed}


def model_of(artefact: Artefact) -> RewardModel:
    """The model of an artefact; `UnusableModel` where its uncertainty is damaged."""
    content = artefact.extras.get(UNCERTAINTY)
    if content is None:
        return RewardModel(artefact.heads)
    try:
        arrays = load(content)
        posterior, spread = from_arrays(arrays), _spread_in(arrays)
    except (SafetensorError, InvalidRequest, IndexError, TypeError, ValueError) as error:
        raise UnusableModel(f"{artefact.id} is damaged: {UNCERTAINTY} cannot be read") from error
    parts = posterior.members if isinstance(posterior, Ensemble) else (posterior,)
    if not parts or any(part.width != artefact.heads.width for part in parts):
        raise UnusableModel(f"{artefact.id} is damaged: {UNCERTAINTY} does not fit its heads")
    return RewardModel(artefact.heads, posterior, spread)


def _spread_in(arrays: Mapping[str, NDArray[Any]]) -> float:
    """The spread of the labels; models of before it was stored have none. `ValueError` where it is damaged."""
    if SPREAD not in arrays:
        return LARGEST_STD
    spread = float(arrays[SPREAD].item())
    if not 0.0 < spread <= LARGEST_STD:
        raise ValueError("no standard deviation of labels")
    return spread


def _stored(posterior: LinearPosterior) -> LinearPosterior:
    """With the directions of least variance, rounded as they will be stored."""
    kept = np.argsort(posterior.variances, kind="stable")[:MAX_DIRECTIONS]
    smaller = replace(posterior, directions=posterior.directions[kept], variances=posterior.variances[kept])
    rounded = {name: values.astype(np.float32) for name, values in to_arrays(smaller).items()}
    found = from_arrays(rounded)
    return found if isinstance(found, LinearPosterior) else smaller
