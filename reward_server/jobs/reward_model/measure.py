"""Measures a reward model on rows it has not seen, beside simple baselines and the agreement of people.

The same resamples serve the model and its baselines, so their intervals can be read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.dataset import OVERALL, Dataset, groups_of
from reward_server.reward_models.heads import Exact, Heads, Matrix
from reward_server.reward_models.matrices import Examples
from reward_server.reward_models.metrics import (
    PAIR_STATISTICS,
    VALUE_STATISTICS,
    Resamples,
    as_json,
    ece,
    human_ceiling,
)

PAIRS = "pairs"


@dataclass(frozen=True)
class Measured:
    """Figures for the card, and the points that the plots show."""

    metrics: dict[str, Any]
    """By head and, where there are pairs, `pairs`."""
    baselines: dict[str, Any]
    ceiling: dict[str, Any]
    predicted: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    """Values of the overall head on rows with a label for it."""
    labels: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    chances: Exact = field(default_factory=lambda: np.zeros(0), repr=False)
    """P(chosen is preferred) of each pair."""
    targets: Exact = field(default_factory=lambda: np.zeros(0), repr=False)


@dataclass(frozen=True)
class Rows:
    """Rows to measure on: the data set, its features and its plain features by digest."""

    dataset: Dataset
    features: Mapping[str, Matrix]
    plain: Mapping[str, Matrix]


def measure(heads: Heads, rows: Rows, baselines: Baselines, seed: int = 0) -> Measured:
    """All figures that these rows allow."""
    examples = Examples.of(rows.dataset, rows.features, heads.names, heads.width)
    metrics: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    predicted, labels = np.zeros(0), np.zeros(0)
    if len(examples.features):
        values = heads.values(examples.features)
        plain = _plain(rows)
        groups = groups_of(rows.dataset.labelled)
        for place, name in enumerate(heads.names):
            known = np.flatnonzero(np.isfinite(examples.labels[:, place]))
            if not len(known):
                continue
            found, wanted = values[known, place], examples.labels[known, place].astype(np.float64)
            resamples = Resamples.of([groups[row] for row in known], seed)
            metrics[name] = {"n": len(known), "variance": round(float(wanted.var()), 6)}
            metrics[name] |= as_json(resamples.figures(VALUE_STATISTICS, found, wanted))
            if name == OVERALL:
                predicted, labels = found, wanted
                beside = {
                    each: as_json(resamples.figures(VALUE_STATISTICS, np.clip(line(plain[known]), 0.0, 1.0), wanted))
                    for each, line in baselines.lines.items()
                }
    chances, targets = np.zeros(0), examples.targets.astype(np.float64)
    if len(examples.chosen):
        chances = heads.chances(examples.chosen, examples.rejected)
        metrics[PAIRS], against = _pair_figures(rows, chances, targets, baselines, seed)
        beside = {name: {**beside.get(name, {}), **figures} for name, figures in {**beside, **against}.items()}
    ceiling = _ceiling(rows.dataset, seed)
    return Measured(metrics, beside, ceiling, predicted, labels, chances, targets)


def _plain(rows: Rows) -> Matrix:
    found: Matrix = np.stack([rows.plain[row.conversation.digest] for row in rows.dataset.labelled])
    return found


def _pair_figures(
    rows: Rows, chances: Exact, targets: Exact, baselines: Baselines, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    pairs = rows.dataset.preferred
    resamples = Resamples.of(groups_of(pairs), seed)
    figures = {"n": len(pairs), **as_json(resamples.figures(PAIR_STATISTICS, chances - 0.5, targets))}
    # "Chosen" is always first in a row: a chance is as calibrated as its better half.
    confidence, right = np.maximum(chances, 1 - chances), np.where(chances >= 0.5, targets, 1 - targets)
    figures["ece"] = {"value": round(ece(confidence, right), 4)}
    against: dict[str, Any] = {}
    better = np.stack([rows.plain[pair.chosen.digest] for pair in pairs])
    worse = np.stack([rows.plain[pair.rejected.digest] for pair in pairs])
    for name, line in baselines.lines.items():
        against[name] = as_json(resamples.figures(PAIR_STATISTICS, line(better) - line(worse), targets))
    return figures, against


def _ceiling(dataset: Dataset, seed: int) -> dict[str, Any]:
    rated = [row for row in dataset.labelled if len(row.ratings) > 1]
    return as_json(human_ceiling([row.ratings for row in rated], [row.group for row in rated], seed)) if rated else {}
