"""Limit on the bytes that one lab has in flight over all doors: bodies and operations, from arrival to their answer.

A count of requests bounds no memory, since one may be small or have megabytes. Whoever has no room waits: the body of a
request is not read, and a socket neither, so that what is refused in the end was never kept. A lab that sends much
slows down itself alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol
from weakref import WeakValueDictionary

from reward_server.errors import TooManyAtOnce

MOST_BYTES = 16_000_000
"""Of one lab. What is made of bytes takes several times as much memory."""
WAIT_S = 10.0
"""So long the body of a request waits for room, as long as its client may take to send it."""
TOLD = "This lab has {most} MB of requests in progress already; send them one after the other, or in smaller ones."


class PausedReader(Protocol):
    """Reads from a socket, and stopped for lack of room."""

    def read_on(self) -> None:
        """There is room, or it is this one's turn to finish its message without."""


class LabBytes:
    """What one lab has in flight."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._paused: dict[PausedReader, None] = {}
        self._first: PausedReader | None = None

    @property
    def held_bytes(self) -> int:
        """So many."""
        return self._held

    @property
    def is_full(self) -> bool:
        """True if there is room for nothing more."""
        return self._held >= self._most

    def change(self, size: int) -> None:
        """So many bytes more that are there already, or fewer."""
        self._held += size
        if size < 0:
            self._wake()

    async def reserve(self, size: int) -> None:
        """Wait until there is room for so many bytes, and hold it; `TooManyAtOnce` where there is none in time."""
        if not self._waiting and self._fits(size):
            self._held += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.change(-size)
            elif (size, turn) in self._waiting:
                self._waiting.remove((size, turn))
                self._wake()
            if isinstance(error, TimeoutError):
                raise TooManyAtOnce(TOLD.format(most=self._most // 1_000_000)) from None
            raise

    def pause(self, reader: PausedReader) -> None:
        """This one stopped reading; it is told when it may read on."""
        self._paused[reader] = None
        self._wake()

    def finish(self, reader: PausedReader) -> None:
        """This one has a whole message, or is gone: it is the next one's turn."""
        self._paused.pop(reader, None)
        if self._first is reader:
            self._first = None
        self._wake()

    def may_read(self, reader: PausedReader) -> bool:
        """Whether it need not stop."""
        return not self.is_full or self._first is reader

    def _fits(self, size: int) -> bool:
        return self._held == 0 or self._held + size <= self._most

    def _wake(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._held += size
                turn.set_result(None)
        # Parts of messages may fill the room, and none would ever be whole: one reads on in any case.
        while self._paused and (not self.is_full or self._first is None):
            reader = next(iter(self._paused))
            del self._paused[reader]
            if self.is_full:
                self._first = reader
            reader.read_on()


class Reservation:
    """Room for the body of one request."""

    def __init__(self, lab: LabBytes) -> None:
        self._lab = lab
        self._held = 0

    async def take(self, size: int) -> None:
        """Wait for room for so many bytes; `TooManyAtOnce` where there is none in time."""
        await self._lab.reserve(size)
        self._held += size

    def keep(self, size: int) -> None:
        """Give back all but so many."""
        if size < self._held:
            self._lab.change(size - self._held)
            self._held = size

    def leave(self) -> None:
        """Give back all."""
        self.keep(0)


class BytesInFlight:
    """What all labs have in flight."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._labs: WeakValueDictionary[str, LabBytes] = WeakValueDictionary()

    def of(self, lab_id: str) -> LabBytes:
        """That of a lab; to be held by whoever has something in flight."""
        found = self._labs.get(lab_id)
        if found is None:
            found = self._labs[lab_id] = LabBytes(self._most)
        return found
