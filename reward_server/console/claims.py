"""Claims on pairs that somebody looks at, so that two people who label at once do not meet the same one.

In this process alone, and for ten minutes: a claim that is lost, as with a restart, costs a pair that is labelled
twice, which agreement between people is measured on anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

LASTS = timedelta(minutes=10)
MOST = 10_000


@dataclass
class Claims:
    """Claims of all labs, and what people do not want to be shown again."""

    _held: OrderedDict[str, tuple[str, datetime]] = field(default_factory=OrderedDict)
    _skipped: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def is_free(self, pair: str, person: str, now: datetime) -> bool:
        """True if nobody else looks at it."""
        holder, until = self._held.get(pair, (person, now))
        return holder == person or until <= now

    def claim(self, pair: str, person: str, now: datetime) -> None:
        """Keep others from it for a while."""
        self._held[pair] = person, now + LASTS
        self._held.move_to_end(pair)
        while len(self._held) > MOST:
            self._held.popitem(last=False)

    def leave(self, pair: str) -> None:
        """Let others have it."""
        self._held.pop(pair, None)

    def skip(self, pair: str, person: str) -> None:
        """Do not show it to this person again."""
        self.leave(pair)
        self._skipped[f"{person}\n{pair}"] = None
        while len(self._skipped) > MOST:
            self._skipped.popitem(last=False)

    def is_skipped(self, pair: str, person: str) -> bool:
        """True if this person skipped it."""
        return f"{person}\n{pair}" in self._skipped
