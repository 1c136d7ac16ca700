"""Rows of a file that are learned from, and rows that never are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def split(rows: Sequence[T], share: float, seed: int) -> tuple[list[T], list[T]]:
    """(learned from, held out), the same for the same seed."""
    order = list(rows)
    random.Random(f"held out {seed}").shuffle(order)  # noqa: S311 - data, no secret
    count = min(round(share * len(order)), len(order) - 1)
    return order[count:], order[:count]
