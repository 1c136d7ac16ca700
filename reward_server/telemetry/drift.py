"""Drift of a scenario's rewards: the latest against those before them.

A policy that learns moves it, too, and a policy that found a hole moves it far. Another scoring version begins anew.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

LATEST, BEFORE = 100, 1000
ENOUGH_BEFORE = 200
LEAST_SPREAD = 0.02
"""A scenario that always pays the same is not infinitely far from itself."""


@dataclass
class _Window:
    version: str
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))
    before: deque[float] = field(default_factory=lambda: deque(maxlen=BEFORE))


class Drift:
    """The rewards of this process, scenario by scenario."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}

    def note(self, collection: str, scenario: str, reward: float, version: str) -> bool:
        """One more reward; whether there are enough by now to say something."""
        window = self._windows.get((collection, scenario))
        if window is None or window.version != version:
            window = self._windows[collection, scenario] = _Window(version)
        if len(window.latest) == LATEST:
            window.before.append(window.latest[0])
        window.latest.append(reward)
        return len(window.before) >= ENOUGH_BEFORE

    def moved(self, collection: str, scenario: str) -> float | None:
        """The number of standard deviations the mean has moved; None where that is not known."""
        window = self._windows.get((collection, scenario))
        if window is None or len(window.before) < ENOUGH_BEFORE:
            return None
        return in_deviations(window.latest, window.before)


def in_deviations(latest: Collection[float], before: Collection[float]) -> float:
    """The distance of the mean of some rewards from that of those before them, in standard deviations of these."""
    mean = math.fsum(before) / len(before)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in before) / len(before))
    return (math.fsum(latest) / len(latest) - mean) / max(spread, LEAST_SPREAD)
