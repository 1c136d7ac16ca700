"""How sure a trained head is by an ensemble: the same head fitted again on resampled dialogues.

The other way than the posterior of `model`; slower by as many times as there are members, and blind to nothing that
resampling dialogues can show: that rows of one dialogue are alike makes members differ more, while a posterior takes
every row for a new one. Breiman, Bagging predictors, 1996; resampled by dialogue as in Field & Welsh 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reward_server.reward_models.heads import Exact, Heads
from reward_server.reward_models.matrices import Examples
from reward_server.reward_models.posterior import Ensemble, LinearPosterior
from reward_server.reward_models.uncertainty import Precisions, fit_ensemble

MEMBERS = 8


@dataclass(frozen=True)
class Bagging:
    """How many members, and the dialogue of each row of the training part."""

    labelled: tuple[str, ...]
    pairs: tuple[str, ...]
    members: int = MEMBERS
    seed: int = 0


def label_ensemble(heads: Heads, train: Examples, validation: Examples, strength: float, bagging: Bagging) -> Ensemble:
    """Ridge members with the penalty of the trained head, around it; noise from the validation part.

    `strength` is the ratio of noise to prior variance.

    Raises:
        InvalidRequest: the training part has too few dialogues to resample.
    """
    known = np.flatnonzero(np.isfinite(train.labels[:, 0]))
    held = np.flatnonzero(np.isfinite(validation.labels[:, 0]))
    rows, others = heads.earning(train.features[known]), heads.earning(validation.features[held])
    errors = heads.raw(validation.features[held])[:, 0] - validation.labels[held, 0].astype(np.float64)
    total = max(float(np.mean(errors**2)), 1e-12)
    found = fit_ensemble(
        rows,
        train.labels[known, 0].astype(np.float64),
        [bagging.labelled[row] for row in known],
        members=bagging.members,
        seed=bagging.seed,
        precisions=Precisions(strength / total, 1.0 / total),
        emphasis=_own_scale(rows.std(axis=0)),
    )
    centred = _around(heads, found)
    # Errors on rows that were not fitted are noise and epistemic variance together, see `model`.
    epistemic = float(np.mean(centred.predict(others).epistemic_std ** 2))
    return Ensemble(tuple(_with_noise(each, total / (total + epistemic)) for each in centred.members))


def preference_ensemble(heads: Heads, train: Examples, l2: float, bagging: Bagging) -> Ensemble:
    """Bradley-Terry members with the penalty of the trained head, around it; ties say nothing of who wins.

    Raises:
        InvalidRequest: the training part has too few decided pairs or dialogues.
    """
    decided = np.flatnonzero(train.targets != 0.5)
    # In units of log-odds, so that weights are on the scale of the head's.
    rows = heads.earning(train.chosen[decided]) - heads.earning(train.rejected[decided])
    rows = rows * heads.sharpness
    found = fit_ensemble(
        rows,
        None,
        [bagging.pairs[row] for row in decided],
        members=bagging.members,
        seed=bagging.seed,
        precisions=Precisions(2.0 * l2 * len(rows) / heads.width, 1.0),
        emphasis=_own_scale(np.sqrt((rows**2).mean(axis=0))),
    )
    return _around(heads, found)


def _own_scale(spread: Exact) -> Exact:
    """The emphasis that leaves features on the scale they are on: the head's penalty is for that one."""
    return np.where(spread > 1e-9, spread, 1.0)


def _around(heads: Heads, found: Ensemble) -> Ensemble:
    """Members moved together so that their mean is the head that is served: what is asked of them is their spread."""
    slopes = np.stack([each.weights / each.scale for each in found.members])
    offsets = np.array([each.bias for each in found.members]) - np.array(
        [float(each.centre @ slope) for each, slope in zip(found.members, slopes, strict=True)]
    )
    slope = heads.weights[0].astype(np.float64) - slopes.mean(axis=0)
    offset = float(heads.bias[0]) - float(offsets.mean())
    return Ensemble(
        tuple(
            replace(
                each, weights=each.weights + each.scale * slope, bias=each.bias + offset + float(each.centre @ slope)
            )
            for each in found.members
        )
    )


def _with_noise(member: LinearPosterior, factor: float) -> LinearPosterior:
    """The same member for labels with `factor` times the noise variance."""
    return replace(
        member,
        variances=member.variances * factor,
        outside=member.outside * factor,
        bias_variance=member.bias_variance * factor,
        noise_variance=None if member.noise_variance is None else member.noise_variance * factor,
    )
