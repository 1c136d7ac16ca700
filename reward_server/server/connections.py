"""Bounds open connections, per address, per lab and in all, and hangs up on clients that do not read.

A connection counts for its address until a request on it had a key, and from then on for the lab of that key: behind a
proxy all labs have one address, and none of them can take the places of the others. Where there is no place left, the
newcomer takes that of the connection which was idle, silent or unread for longest, so that whoever fills the server
with such connections loses his own first; a connection on which a lab's request is being answered keeps its place. A
client that reads too slowly holds memory alone (a request's place is free as soon as there is an answer), and not for
long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from reward_server.auth.networks import network_of
from reward_server.server.accepting import room_for

PER_REQUEST = 16
"""Open connections for each request that may be in work: most of them are idle."""
PER_REQUEST_OF_AN_ADDRESS = 2
"""Those whose key is not known yet: behind a proxy all of them come from one address."""
PER_REQUEST_OF_A_LAB = 4
"""Its sockets and sessions (`limits.connections`), and as many again for requests."""
MOST = 4096
MOST_PER_ADDRESS = 512
MOST_PER_LAB = 1024
WRITE_DEADLINE_S = 20.0
"""Time in which a client has to read a part of its answer that counts."""
PROGRESS = 0.9
"""What is left of an unread answer after that time, at most."""
MOST_UNREAD_BYTES = 64_000_000
"""Of all answers that wait for slow readers together; beyond, the one that waits longest is given up."""


class OpenConnection(Protocol):
    """The properties of a connection that are looked at."""

    @property
    def address(self) -> str:
        """The address it comes from, without the port."""

    @property
    def lab(self) -> str | None:
        """The lab that asked last on it; None before a request had a key."""

    @property
    def is_answering(self) -> bool:
        """True if a request of a lab is being worked on, and its answer is not just waiting to be read."""

    @property
    def unread_bytes(self) -> int:
        """Bytes that were written and are not read yet, beyond what the system holds."""

    def hang_up(self) -> None:
        """End it at once; what was not read is lost."""


class _Owner(NamedTuple):
    """Whose share a connection takes."""

    name: str
    is_lab: bool


def _owner_of(connection: OpenConnection) -> _Owner:
    if connection.lab is not None:
        return _Owner(connection.lab, is_lab=True)
    return _Owner(network_of(connection.address), is_lab=False)


@dataclass(slots=True)
class _Unread:
    """The part of an answer that was not read, and since when."""

    size: int
    since: float


@dataclass
class Connections:
    """The open connections of a server."""

    most: int = MOST
    most_per_address: int = MOST_PER_ADDRESS
    most_per_lab: int = MOST_PER_LAB
    write_deadline_s: float = WRITE_DEADLINE_S
    monotonic: Callable[[], float] = time.monotonic
    _of: dict[_Owner, dict[OpenConnection, None]] = field(default_factory=dict)
    """By lab, or by address (of IPv6 the network of a host); those that were quiet for longest first."""
    _owners: dict[OpenConnection, _Owner] = field(default_factory=dict)
    _unread: dict[OpenConnection, _Unread] = field(default_factory=dict)
    _count: int = 0
    _sweep: asyncio.TimerHandle | None = None

    @classmethod
    def beside(cls, requests: int) -> Self:
        """As many as the requests that may be in work make, and the system allows."""
        most, of_an_address = room_for(requests * PER_REQUEST), requests * PER_REQUEST_OF_AN_ADDRESS
        return cls(most, of_an_address, requests * PER_REQUEST_OF_A_LAB)

    def __len__(self) -> int:
        return self._count

    def enter(self, newcomer: OpenConnection) -> bool:
        """Let a connection in, if need be in the place of another; False where all are being answered."""
        owner = _owner_of(newcomer)
        own = self._of.get(owner, {})
        if len(own) >= self.most_per_address:
            self._settle(own)
        if len(own) >= self.most_per_address and not self._evict(own):
            return False
        if self._count >= self.most and not self._evict(max(self._of.values(), key=len)):
            return False
        self._put(newcomer, owner)
        self._count += 1
        if self._sweep is None:
            self._sweep_later()
        return True

    def leave(self, connection: OpenConnection) -> None:
        """A connection ended; one that was never let in, or left before, is no matter."""
        if connection in self._owners:
            self._take(connection)
            self._count -= 1
        self._unread.pop(connection, None)

    def stirs(self, connection: OpenConnection) -> None:
        """It sent a request, or was answered: it is the last now to lose its place."""
        if connection not in self._owners:
            return
        self._take(connection)
        owner = _owner_of(connection)
        own = self._of.get(owner, {})
        if owner.is_lab and len(own) >= self.most_per_lab:
            self._evict(own)
        self._put(connection, owner)

    def waits(self, connection: OpenConnection) -> None:
        """It does not read as fast as it is written to."""
        self._unread.setdefault(connection, _Unread(connection.unread_bytes, self.monotonic()))
        while len(self._unread) > 1 and sum(each.unread_bytes for each in self._unread) > MOST_UNREAD_BYTES:
            self._drop(next(iter(self._unread)))

    def reads(self, connection: OpenConnection) -> None:
        """It caught up."""
        self._unread.pop(connection, None)

    def sweep(self) -> None:
        """Hang up on those that read nothing to speak of for the time allowed."""
        now = self.monotonic()
        for connection in [each for own in self._of.values() for each in own]:
            size = connection.unread_bytes
            if size == 0:
                self._unread.pop(connection, None)
                continue
            seen = self._unread.setdefault(connection, _Unread(size, now))
            if now - seen.since < self.write_deadline_s:
                continue
            if size > seen.size * PROGRESS:
                self._drop(connection)
            else:
                seen.size, seen.since = size, now

    def _settle(self, own: dict[OpenConnection, None]) -> None:
        """Count those for their labs whose key is known by now."""
        for connection in [each for each in own if each.lab is not None]:
            self.stirs(connection)

    def _put(self, connection: OpenConnection, owner: _Owner) -> None:
        self._of.setdefault(owner, {})[connection] = None
        self._owners[connection] = owner

    def _take(self, connection: OpenConnection) -> None:
        owner = self._owners.pop(connection)
        own = self._of[owner]
        del own[connection]
        if not own:
            del self._of[owner]

    def _evict(self, candidates: dict[OpenConnection, None]) -> bool:
        for connection in candidates:
            if not connection.is_answering:
                self._drop(connection)
                return True
        return False

    def _drop(self, connection: OpenConnection) -> None:
        # Counted out here: the loop reports the end of a connection later.
        self.leave(connection)
        connection.hang_up()

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()

        def sweep() -> None:
            self._sweep = None
            self.sweep()
            if self._count:
                self._sweep_later()

        self._sweep = loop.call_later(self.write_deadline_s / 4, sweep)
