"""Measures a reward model on rows it has not seen, beside simple baselines and the agreement of people.

The same resamples serve the model and its baselines, so their intervals can be read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_server.fitting.reward_model.doubt import doubt_figures
from reward_server.fitting.reward_model.metrics import (
    PAIR_STATISTICS,
    VALUE_STATISTICS,
    Resamples,
    as_json,
    ece,
    human_ceiling,
)
from reward_server.fitting.reward_model.within import PAIRS_WITHIN, WITHIN, pairs_within_systems, within_systems
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.dataset import Dataset, groups_of
from reward_server.reward_models.fitness import PAIRS
from reward_server.reward_models.heads import Exact, Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.reliability import RiskCoverage


@dataclass(frozen=True)
class ModelFigures:
    """Figures for the card, and the points that the plots show."""

    metrics: dict[str, Any]
    """By head and, where there are pairs, `pairs`."""
    baselines: dict[str, Any]
    ceiling: dict[str, Any]
    uncertainty: dict[str, Any]
    """Coverage of the intervals (of labels alone) and the area under the risk-coverage curve; empty where there is no
    uncertainty, or no row to check it by."""
    predicted: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    """Values of the overall head on rows with a label for it."""
    labels: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    risk: RiskCoverage | None = field(default=None, repr=False)
    chances: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    """P(chosen is preferred) of each pair."""
    targets: Exact = field(default_factory=lambda: np.zeros(0), repr=False)


@dataclass(frozen=True)
class MeasuredRows:
    """Rows to measure on: the data set, its features and its plain features by digest."""

    dataset: Dataset
    features: Mapping[str, Matrix]
    plain: Mapping[str, Matrix]


def measure(model: RewardModel, rows: MeasuredRows, baselines: Baselines, seed: int = 0) -> ModelFigures:
    """All figures that these rows allow."""
    examples = ExampleMatrices.of(rows.dataset, rows.features, model.heads.names, model.heads.width)
    metrics: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    predicted, labels, chances = np.zeros(0), np.zeros(0), np.zeros(0)
    targets = examples.targets.astype(np.float64)
    if len(examples.features):
        values = model.heads.values(examples.features)
        metrics = _head_figures(rows, model.heads.names, values, examples.labels, seed)
        known = np.flatnonzero(np.isfinite(examples.labels[:, 0]))
        predicted, labels = values[known, 0], examples.labels[known, 0].astype(np.float64)
        beside = _baseline_figures(rows, known, labels, baselines, seed)
        own = [rows.dataset.labelled[row] for row in known]
        if within := within_systems(own, predicted, labels, seed):
            metrics[WITHIN] = within
    if len(examples.chosen):
        chances = model.heads.chances(examples.chosen, examples.rejected)
        metrics[PAIRS], against = _pair_figures(rows, chances, targets, baselines, seed)
        beside |= {name: {**beside.get(name, {}), **against[name]} for name in against}
        if within := pairs_within_systems(rows.dataset.preferred, chances - 0.5, targets, seed):
            metrics[PAIRS_WITHIN] = within
    uncertainty, risk = doubt_figures(model, rows.dataset, examples, seed)
    ceiling = _ceiling(rows.dataset, seed)
    return ModelFigures(metrics, beside, ceiling, uncertainty, predicted, labels, risk, chances, targets)


def _head_figures(rows: MeasuredRows, names: Sequence[str], values: Exact, labels: Matrix, seed: int) -> dict[str, Any]:
    """Figures of each head over the rows that have a label for it."""
    groups = groups_of(rows.dataset.labelled)
    metrics: dict[str, Any] = {}
    for place, name in enumerate(names):
        known = np.flatnonzero(np.isfinite(labels[:, place]))
        if not len(known):
            continue
        predicted, wanted = values[known, place], labels[known, place].astype(np.float64)
        resamples = Resamples.of([groups[row] for row in known], seed)
        metrics[name] = {"n": len(known), "variance": round(float(wanted.var()), 6)}
        metrics[name] |= as_json(resamples.figures(VALUE_STATISTICS, predicted, wanted))
    return metrics


def _baseline_figures(
    rows: MeasuredRows, known: NDArray[np.intp], labels: Exact, baselines: Baselines, seed: int
) -> dict[str, Any]:
    """The same figures of each baseline for the overall head."""
    if not len(known):
        return {}
    own = [rows.dataset.labelled[row] for row in known]
    resamples = Resamples.of(groups_of(own), seed)
    by_baseline = baselines.values([row.conversation for row in own], [row.system for row in own], rows.plain)
    return {
        name: as_json(resamples.figures(VALUE_STATISTICS, np.clip(values, 0.0, 1.0), labels))
        for name, values in by_baseline.items()
    }


def _pair_figures(
    rows: MeasuredRows, chances: Exact, targets: Exact, baselines: Baselines, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    pairs = rows.dataset.preferred
    resamples = Resamples.of(groups_of(pairs), seed)
    figures = {"n": len(pairs), **as_json(resamples.figures(PAIR_STATISTICS, chances - 0.5, targets))}
    # "Chosen" is always first in a row: a chance is as calibrated as its better half.
    confidence, right = np.maximum(chances, 1 - chances), np.where(chances >= 0.5, targets, 1 - targets)
    figures["ece"] = {"value": round(ece(confidence, right), 4)}
    against: dict[str, Any] = {}
    better = baselines.values([pair.chosen for pair in pairs], [pair.systems[0] for pair in pairs], rows.plain)
    worse = baselines.values([pair.rejected for pair in pairs], [pair.systems[1] for pair in pairs], rows.plain)
    for name in (figure for figure in better if figure in worse):
        against[name] = as_json(resamples.figures(PAIR_STATISTICS, better[name] - worse[name], targets))
    return figures, against


def _ceiling(dataset: Dataset, seed: int) -> dict[str, Any]:
    rated = [row for row in dataset.labelled if len(row.ratings) > 1]
    return as_json(human_ceiling([row.ratings for row in rated], [row.group for row in rated], seed)) if rated else {}
