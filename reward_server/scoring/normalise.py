"""Normalisation windows: where a new reward stands among earlier ones with the same key.

A window is a number and a unit: `7d` days, `2w` weeks, `3m` months of 30 days, `100n` the last 100 rewards.
Statistics are those of the population; the new value is not in its own window.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reward_server.errors import FieldProblem, InvalidRequest
from trainer_client import wire

_SPEC = re.compile(r"([0-9]+)([dwmn])")
_DAYS = {"d": 1, "w": 7, "m": 30}
_LARGEST_COUNT = 2**31 - 1
"""More rewards than any store holds; a longer window means the same."""
_MOST_DIGITS = len(str(_LARGEST_COUNT))
_DAYS_OF_ALL_TIME = 20_000
SMALLEST_STD = 1e-9
"""Below it, equal rewards differ by rounding alone."""


@dataclass(frozen=True, slots=True)
class WindowRange:
    """Limits of a window of earlier rewards: those since a moment, or the last so many; both None is all."""

    spec: str
    since: datetime | None = None
    last: int | None = None


def parse_windows(specs: Sequence[str], now: datetime) -> tuple[WindowRange, ...]:
    """The ranges of windows, without duplicates; `InvalidRequest` for one that is malformed."""
    return tuple(_parse(spec, index, now) for index, spec in enumerate(specs) if spec not in specs[:index])


def _parse(spec: str, index: int, now: datetime) -> WindowRange:
    found = _SPEC.fullmatch(spec)
    if found is None:
        problem = FieldProblem(("normalization_windows", index), "A window is a number and one of d, w, m, n.")
        raise InvalidRequest(errors=[problem])
    digits, unit = found[1].lstrip("0") or "0", found[2]
    number = int(digits) if len(digits) <= _MOST_DIGITS else _LARGEST_COUNT
    if unit == "n":
        return WindowRange(spec, last=min(number, _LARGEST_COUNT))
    days = number * _DAYS[unit]
    # A window that reaches back further than any calendar or store takes in everything.
    return WindowRange(spec, since=now - timedelta(days=days) if days < _DAYS_OF_ALL_TIME else None)


def normalised(reward: float, n: int, mean: float, std: float) -> wire.Window:
    """Compare `reward` with a window; `z` is null when fewer than two rewards are there or all are equal."""
    if n < 1:
        return wire.Window(z=None, mean=0.0, std=0.0, n=0)
    std = std if std > SMALLEST_STD else 0.0
    z = (reward - mean) / std if n > 1 and std > 0 else None
    return wire.Window(z=z, mean=mean, std=std, n=n)
