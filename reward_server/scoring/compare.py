"""Compares two scored transcripts: who is ahead, and by how much.

Antisymmetric by construction: only the two rewards are looked at, each scored as it would be alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TIE_MARGIN = 1e-6

Winner = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The outcome; `margin` is never negative."""

    winner: Winner
    margin: float


def compare(reward_a: float, reward_b: float) -> ComparisonResult:
    """The winner and the margin of two rewards."""
    margin = round(abs(reward_a - reward_b), 4)
    if margin < TIE_MARGIN:
        return ComparisonResult("tie", 0.0)
    return ComparisonResult("a" if reward_a > reward_b else "b", margin)
