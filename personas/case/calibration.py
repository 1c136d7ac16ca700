"""Platt scaling of the reader's probabilities in one collection: how sure it has to be differs from case to case.

Of a case that the reader was not trained on, it ranks topics and commitments well and is too seldom sure. A collection
may bring a map of the log odds that was fitted on its own labelled turns (Platt, "Probabilistic outputs for support
vector machines", 1999). It is part of the case, so no other collection is read otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LOWEST = 5e-5
"""Probabilities are rounded to four decimals: one below the last of them has this one's log odds."""


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """`logit(p') = scale * logit(p) + shift`."""

    scale: float = 1.0
    shift: float = 0.0

    def of(self, probability: float) -> float:
        """The probability after the map, rounded to four decimals."""
        p = min(max(probability, LOWEST), 1 - LOWEST)
        odds = self.scale * math.log(p / (1 - p)) + self.shift
        return round(1 / (1 + math.exp(-min(max(odds, -40.0), 40.0))), 4)


@dataclass(frozen=True, slots=True)
class ReaderCalibration:
    """The maps of one collection, and the reader that they were fitted for."""

    reader: str
    """Digest of the reader's artefact: for another reader the maps mean nothing, and are not used."""
    topic: PlattScaling = PlattScaling()
    commitment: PlattScaling = PlattScaling()
