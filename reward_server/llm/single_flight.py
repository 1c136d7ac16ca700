"""Single flight: what is asked twice at the same time is done once.

The work runs in a task of its own, which belongs to all who wait for it: it goes on while one of them is left, and is
cancelled with the last. Nothing is remembered once it is done; that is a cache's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class _Flight(Generic[Result]):
    task: asyncio.Task[Result]
    waiting: int = 0


class SingleFlight(Generic[Result]):
    """Work under way, by key."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[Result]] = {}

    def is_under_way(self, key: Hashable) -> bool:
        """True if somebody is waiting for this already."""
        return key in self._flights

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result of the work under this key, which is begun if it is not under way."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
            flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                # Whoever comes now must not join work that is being cancelled.
                self._land(key, flight)
                flight.task.cancel()

    def _land(self, key: Hashable, flight: _Flight[Result]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
