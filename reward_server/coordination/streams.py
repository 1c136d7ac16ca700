"""How many streams of events one lab may have open on a server: each of them looks at the database once a second.

They are no places of requests (`places`), which a lab would soon lack for everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from reward_server.errors import TooManyAtOnce

MOST = 50
"""Of one lab: as many as it may have open jobs."""


class LabStreams:
    """The streams of all labs that this server sends."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def held(self, lab_id: str) -> Iterator[None]:
        """One more while this is entered; `TooManyAtOnce` where the lab has as many as it may."""
        if self._open[lab_id] >= self._most:
            raise TooManyAtOnce(f"This lab follows {self._most} streams of events already; close one.")
        self._open[lab_id] += 1
        try:
            yield
        finally:
            self._open[lab_id] -= 1
            if not self._open[lab_id]:
                del self._open[lab_id]
