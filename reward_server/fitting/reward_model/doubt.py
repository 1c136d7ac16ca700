"""Checks a model's doubt against what came of it: coverage of intervals, and whether doubt sorts errors.

An uncertainty is of use only if errors are larger where it is larger. That is shown if the area under the risk-coverage
curve (AURC) is below that of a random order by more than chance: the 95 % interval of the difference, from resampling
whole dialogues, lies below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reward_server.fitting.reward_model.metrics import MIN_RESAMPLED, Figure, Resamples
from reward_server.reward_models.dataset import Dataset, groups_of
from reward_server.reward_models.feature_rows import picked
from reward_server.reward_models.heads import Exact
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.reliability import RiskCoverage, coverage, less_random, risk_coverage

Doubt = tuple[dict[str, Any], RiskCoverage | None]
"""Figures for the card, and the curve that the plot shows."""


def doubt_figures(model: RewardModel, dataset: Dataset, examples: ExampleMatrices, seed: int) -> Doubt:
    """The worth of the model's uncertainty on these rows; nothing where it has none, or no row can tell.

    Of a model of preferences, an error is a pair in the wrong order (0 or 1), and its doubt is the spread of the
    margin. There is no plot of that: the size of the margin sorts such errors better.
    """
    if model.posterior is None:
        return {}, None
    if model.heads.link == "preference":
        return _of_pairs(model, dataset, examples, seed), None
    return _of_labels(model, dataset, examples, seed)


def sorts_errors(figures: Mapping[str, Any]) -> bool:
    """True if these figures show that errors are larger where the doubt is, by more than chance."""
    difference = figures.get("aurc", {}).get("difference", {})
    return bool(difference.get("high", 0.0) < 0.0)


def not_shown(figures: Mapping[str, Any]) -> str:
    """The reason why these figures do not show that doubt sorts errors, as a sentence about it."""
    area = figures.get("aurc")
    if area is None:
        return "no held-out row can tell whether it sorts errors"
    if "high" not in area["difference"]:
        return f"fewer than {MIN_RESAMPLED} held-out groups cannot show that it sorts errors"
    return f"it is not shown to sort the errors of the held-out rows ({areas(area)})"


def areas(area: Mapping[str, Any]) -> str:
    """The area under the curve beside that of a random order."""
    told = f"AURC {area['aurc']:.4f}, at random {area['random']:.4f}"
    difference = area["difference"]
    if "high" not in difference:
        return told
    return f"{told}; difference {difference['value']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]"


def _of_labels(model: RewardModel, dataset: Dataset, examples: ExampleMatrices, seed: int) -> Doubt:
    known = np.flatnonzero(np.isfinite(examples.labels[:, 0])) if len(examples.features) else np.zeros(0, dtype=int)
    if not len(known):
        return {}, None
    predicted = model.predict(picked(examples.features, known))
    if predicted.epistemic is None or predicted.noise is None:
        return {}, None
    values, labels = predicted.values[:, 0], examples.labels[known, 0].astype(np.float64)
    total = np.sqrt(predicted.epistemic**2 + predicted.noise**2)
    groups = groups_of(dataset.labelled)
    area, risk = _sorted(total, np.abs(values - labels), [groups[row] for row in known], seed)
    shares = {
        f"{point.level:g}": Figure(point.share.value, point.share.low, point.share.high).to_json()
        for point in coverage(values, total, labels)
    }
    figures = {
        "coverage": shares,
        "epistemic_std": round(float(predicted.epistemic.mean()), 4),
        "noise_std": round(float(predicted.noise.mean()), 4),
        "aurc": area,
    }
    return figures, risk


def _of_pairs(model: RewardModel, dataset: Dataset, examples: ExampleMatrices, seed: int) -> dict[str, Any]:
    targets = examples.targets.astype(np.float64)
    decided = np.flatnonzero(targets != 0.5)
    spread = model.margin_std(examples.chosen, examples.rejected)
    if spread is None or not len(decided):
        return {}
    margins = model.heads.chances(examples.chosen, examples.rejected) - 0.5
    right = (np.sign(margins * (targets - 0.5)) + 1.0) / 2.0
    groups = groups_of(dataset.preferred)
    area, _ = _sorted(spread[decided], 1.0 - right[decided], [groups[row] for row in decided], seed)
    return {"aurc": area}


def _sorted(doubt: Exact, errors: Exact, groups: Sequence[str], seed: int) -> tuple[dict[str, Any], RiskCoverage]:
    risk = risk_coverage(doubt, errors)
    area: dict[str, Any] = {name: round(getattr(risk, name), 4) for name in ("aurc", "random", "oracle")}
    difference = Resamples.of(groups, seed).figure(less_random, doubt, errors)
    if difference is not None:
        area["difference"] = difference.to_json()
    return area, risk
