"""Lag of the event loop: whatever blocks it delays every request, and shows nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

EVERY_S = 0.25
WINDOW = 40
"""Looks that count: of the last ten seconds."""


class LoopLag:
    """The longest delay of the last seconds."""

    def __init__(self, tell: Callable[[float], object], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._monotonic = monotonic
        self._late: deque[float] = deque(maxlen=WINDOW)
        self._expected: float | None = None

    @property
    def worst_s(self) -> float:
        """The longest delay of late, the one that lasts included."""
        now_late = 0.0 if self._expected is None else self._monotonic() - self._expected
        return max(0.0, now_late, *self._late)

    async def watch(self) -> None:
        """Look at it until cancelled."""
        while True:
            self._expected = self._monotonic() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late.append(self._monotonic() - self._expected)
            self._tell(self.worst_s)
