"""The requests in work, so that a server that stops can end them with an answer that is true."""

from __future__ import annotations

import asyncio
from typing import Protocol

LOOK_EVERY_S = 0.05
"""How often is looked whether what was being stored is."""


class StoppableRequest(Protocol):
    """A request in work."""

    def stop(self) -> bool:
        """Cut it short, if nothing is being stored for it at this moment; whether it was."""


class RequestsInWork:
    """Requests from their head to the end of their answer."""

    def __init__(self) -> None:
        self.is_stopped = False
        """Whether those that are cut short are so because the server stops."""
        self._all: set[StoppableRequest] = set()

    def enter(self, request: StoppableRequest) -> None:
        """It begins."""
        self._all.add(request)

    def leave(self, request: StoppableRequest) -> None:
        """It has ended."""
        self._all.discard(request)

    async def stop(self) -> None:
        """End what is still in work; what is being stored is waited for, and answered."""
        self.is_stopped = True
        stopped: set[StoppableRequest] = set()
        while self._all:
            stopped |= {each for each in self._all - stopped if each.stop()}
            await asyncio.sleep(LOOK_EVERY_S)
