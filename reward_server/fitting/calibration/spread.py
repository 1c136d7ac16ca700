"""The spread of rewards before and after a map that knows no labels: all that can be said of rescaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reward_server.reward_models.calibration import Calibration
from reward_server.reward_models.reliability import Floats


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation of the population, and the 5, 50 and 95 % quantiles."""

    mean: float
    std: float
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Rescaled:
    """One reward on both scales, over the rows that the map was fitted on."""

    before: Spread
    after: Spread


def rescaled(calibration: Calibration, name: str, values: Floats) -> Rescaled:
    """Both spreads of a named reward; values (n,)."""
    return Rescaled(spread_of(values), spread_of(calibration.map_of(name).curve.apply(values)))


def spread_of(values: Floats) -> Spread:
    """Of at least one value, (n,)."""
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return Spread(float(values.mean()), float(values.std()), low, median, high)
