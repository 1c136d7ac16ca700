"""Simple baselines of a reward model, fitted on its own training rows: the mean, length, answer-to-prompt cosine.

Each is the best straight line in one plain feature (least squares; for pairs the sign of the correlation), so a learned
model that is no better has learned nothing but that feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_server.reward_models.heads import Exact, Matrix
from reward_server.reward_models.plain_features import NAMES

MEAN = "mean"


@dataclass(frozen=True)
class Line:
    """`intercept + slope * feature[column]`."""

    intercept: float
    slope: float
    column: int

    def __call__(self, plain: Matrix) -> Exact:
        """Values, shape (n,)."""
        values: Exact = self.intercept + self.slope * plain[:, self.column].astype(np.float64)
        return values


@dataclass(frozen=True)
class Baselines:
    """By name: `mean`, `length`, `cosine`."""

    lines: Mapping[str, Line]

    @classmethod
    def fitted(cls, plain: Matrix, labels: Exact, differences: Matrix, targets: Exact) -> Baselines:
        """On labelled rows where there are some, else on pairs (differences of plain features, 1 or 1/2)."""
        if len(labels):
            lines = {MEAN: Line(float(labels.mean()), 0.0, 0)}
            lines |= {name: _least_squares(plain, labels, column) for column, name in enumerate(NAMES)}
            return cls(lines)
        signs = [np.sign(float(differences[:, c].astype(np.float64) @ (2 * targets - 1))) for c in range(len(NAMES))]
        return cls({name: Line(0.0, float(signs[column]), column) for column, name in enumerate(NAMES)})

    def to_json(self) -> dict[str, Any]:
        """For a card."""
        return {n: {"intercept": x.intercept, "slope": x.slope, "column": x.column} for n, x in self.lines.items()}

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> Baselines:
        """The inverse of `to_json`."""
        lines = {
            name: Line(float(line["intercept"]), float(line["slope"]), int(line["column"]))
            for name, line in recorded.items()
        }
        return cls(lines)


def _least_squares(plain: Matrix, labels: Exact, column: int) -> Line:
    feature = plain[:, column].astype(np.float64)
    centred = feature - feature.mean()
    power = float(centred @ centred)
    slope = float(centred @ labels) / power if power > 1e-12 else 0.0
    return Line(float(labels.mean()) - slope * float(feature.mean()), slope, column)
