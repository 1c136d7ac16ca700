"""How many requests of one lab may be in work at once: held from before the body is read until there is an answer.

Without it one key could hold all places of the server, with bodies that come slowly, say.
"""

from __future__ import annotations

from collections import Counter

from reward_server.coordination.lab import Lab
from reward_server.errors import TooManyAtOnce

SHARE = 0.75
"""Of the places of the server, the most for one lab."""


class LabPlaces:
    """The places of all labs."""

    def __init__(self, places: int) -> None:
        self._most = max(1, int(places * SHARE))
        self._held: Counter[str] = Counter()

    def enter(self, lab: Lab) -> None:
        """Take one; `TooManyAtOnce` where the lab has all it may, or the key all that it may."""
        holders = ((lab.lab_id, lab.limits.concurrency), (_of_key(lab), lab.concurrency))
        if any(self._held[name] >= self._may_hold(most) for name, most in holders):
            raise TooManyAtOnce
        for name, _ in holders:
            self._held[name] += 1

    def leave(self, lab: Lab) -> None:
        """Give it back."""
        for name in (lab.lab_id, _of_key(lab)):
            self._held[name] -= 1
            if self._held[name] <= 0:
                del self._held[name]

    def _may_hold(self, most: int | None) -> int:
        return self._most if most is None else min(self._most, most)


def _of_key(lab: Lab) -> str:
    # No lab is called so: a lab's id has no slash.
    return f"key/{lab.key_id}"
