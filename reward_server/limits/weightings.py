"""Limit on the weightings of a scenario's criteria that a lab may try in a day: differences tell the rubric."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

DAY_S = 86_400.0
MOST = 2
"""Of a scenario, for a lab without full scores."""
MOST_SCENARIOS = 10_000
"""Of all labs together; the one that was weighted longest ago goes first."""


class Weightings:
    """The weightings that labs used, each until a day after its first use."""

    def __init__(self, most: int = MOST, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._monotonic = monotonic
        self._used: dict[tuple[str, str, str], dict[Hashable, float]] = {}

    def wait_s(self, lab_id: str, collection: str, scenario: str, weighting: Hashable) -> float:
        """0 if the lab may use this weighting, which then counts; else the seconds until it may use another one."""
        name, now = (lab_id, collection, scenario), self._monotonic()
        used = {weights: since for weights, since in self._used.pop(name, {}).items() if now - since < DAY_S}
        self._used[name] = used
        if len(self._used) > MOST_SCENARIOS:
            del self._used[next(iter(self._used))]
        if weighting in used:
            return 0.0
        if len(used) >= self._most:
            return min(used.values(), default=now) + DAY_S - now
        used[weighting] = now
        return 0.0
