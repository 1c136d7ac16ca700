"""How many requests of one lab may be in work at once: held from before the body is read until there is an answer.

Without it one key could hold all places of the server, with bodies that come slowly, say.
"""

from __future__ import annotations

from collections import Counter

from reward_server.errors import TooManyAtOnce

SHARE = 0.75
"""Of the places of the server, the most for one lab."""


class LabPlaces:
    """The places of all labs."""

    def __init__(self, places: int) -> None:
        self._most = max(1, int(places * SHARE))
        self._held: Counter[str] = Counter()

    def enter(self, lab_id: str) -> None:
        """Take one; `TooManyAtOnce` where the lab has all it may."""
        if self._held[lab_id] >= self._most:
            raise TooManyAtOnce
        self._held[lab_id] += 1

    def leave(self, lab_id: str) -> None:
        """Give it back."""
        self._held[lab_id] -= 1
        if self._held[lab_id] <= 0:
            del self._held[lab_id]
