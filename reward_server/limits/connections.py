"""Limit on the connections that one lab may hold open on a server: streams of events, and sockets.

They take no slots of requests (`concurrency_limit`), which a lab would soon lack for all else. A stream looks at the
database once a second; a socket holds memory, and with enough of them one lab would leave the others no connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from reward_server.errors import TooManyAtOnce

MOST_STREAMS = 50
"""Of one lab: as many as it may have open jobs."""
MOST_SOCKETS = 50
"""Of one lab; one plays many episodes."""
MOST_SESSIONS = 512
"""Of one lab: an OpenEnv client has a socket for each episode. As many as one address may have connections."""


class LabConnections:
    """The connections of one kind that all labs have with this server."""

    def __init__(self, most: int, told: str) -> None:
        """`told`: what a lab hears that has as many as it may; `{most}` stands for the number."""
        self._most = most
        self._told = told
        self._open: Counter[str] = Counter()

    @contextmanager
    def held(self, lab_id: str) -> Iterator[None]:
        """One more while this is entered; `TooManyAtOnce` where the lab has as many as it may."""
        if self._open[lab_id] >= self._most:
            raise TooManyAtOnce(self._told.format(most=self._most))
        self._open[lab_id] += 1
        try:
            yield
        finally:
            self._open[lab_id] -= 1
            if not self._open[lab_id]:
                del self._open[lab_id]


@dataclass(frozen=True)
class OpenConnections:
    """Those of each kind."""

    streams: LabConnections = field(
        default_factory=lambda: LabConnections(
            MOST_STREAMS, "This lab follows {most} streams of events already; close one."
        )
    )
    sockets: LabConnections = field(
        default_factory=lambda: LabConnections(
            MOST_SOCKETS, "This lab has {most} open sockets already; close one. One socket plays many episodes."
        )
    )
    sessions: LabConnections = field(
        default_factory=lambda: LabConnections(
            MOST_SESSIONS, "This lab has {most} open OpenEnv sessions already; close one."
        )
    )
