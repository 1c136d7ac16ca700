"""A semaphore whose waiters are served lab by lab in turn.

First come, first served would let one lab's batch of thousands hold up everybody's single question beyond its
deadline. Within a lab the order is kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class FairSemaphore:
    """A semaphore that is fair between labs."""

    def __init__(self, count: int) -> None:
        self._free = count
        # Whenever a place is free, nobody is waiting.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, lab_id: str) -> None:
        """Wait for a place; whoever has it gives it back."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(lab_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given the place in the moment it was cancelled.
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand the place to whoever is next."""
        while self._waiting:
            lab_id, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[lab_id] = turns
            # Those who left are still in the queue.
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
