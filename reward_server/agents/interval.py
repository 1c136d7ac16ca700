"""A confidence interval for a mean over scenarios of means over seeds.

The scenarios are fixed, the seeds are a sample: the estimate is that of a stratified sample with equal weights, its
variance the mean of s_k^2 / n_k over K scenarios, divided by K. Degrees of freedom are those of Satterthwaite, "An
Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin 2 (1946), and the interval is
Student's. It speaks of new seeds of these scenarios, not of other scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
LEAST_VARIANCE = 1e-12
"""Below this a spread is rounding: rewards have four decimals."""


@dataclass(frozen=True)
class Stratum:
    """Means over seeds of one scenario: how many, their mean, and the mean of their squares."""

    n: int
    mean: float
    mean_square: float

    @property
    def variance(self) -> float:
        """The unbiased one; needs two values."""
        found = (self.mean_square - self.mean**2) * self.n / (self.n - 1)
        return found if found > LEAST_VARIANCE else 0.0


def mean_of(strata: Sequence[Stratum]) -> float:
    """The mean over scenarios."""
    return math.fsum(each.mean for each in strata) / len(strata)


def interval_of(strata: Sequence[Stratum]) -> tuple[float, float] | None:
    """Low and high within [0, 1]; None where the spread of a scenario cannot be told from one value."""
    from scipy.stats import t as student

    if any(each.n < 2 for each in strata):
        return None
    parts = [each.variance / each.n / len(strata) ** 2 for each in strata]
    variance, centre = math.fsum(parts), mean_of(strata)
    if variance == 0.0:
        return centre, centre
    freedom = variance**2 / math.fsum(part**2 / (each.n - 1) for part, each in zip(parts, strata, strict=True))
    half = float(student.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(variance)
    return max(0.0, centre - half), min(1.0, centre + half)
