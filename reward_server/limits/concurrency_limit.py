"""Limit on the requests of one lab that are in work at once, from before the body is read until there is an answer.

Without it one key could hold all slots of the server, with bodies that come slowly, say. What a lab and its keys may
hold besides is counted over all replicas.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reward_server.auth.lab import Lab
from reward_server.errors import TooManyAtOnce
from reward_server.shared_state.leases import Lease, Leases

SHARE = 0.75
"""Of the slots of the server, the most for one lab."""


@dataclass(frozen=True, slots=True)
class ConcurrencySlot:
    """A slot that a request holds."""

    lab_id: str
    lease: Lease


class LabConcurrencyLimit:
    """The slots of all labs."""

    def __init__(self, slots: int, leases: Leases) -> None:
        self._most = max(1, int(slots * SHARE))
        self._leases = leases
        self._held: Counter[str] = Counter()

    async def enter(self, lab: Lab) -> ConcurrencySlot:
        """Take a slot; `TooManyAtOnce` where the lab has all it may, or the key all that it may."""
        if self._held[lab.lab_id] >= self._most:
            raise TooManyAtOnce
        self._held[lab.lab_id] += 1
        lease = None
        try:
            lease = await self._leases.take(_limits(lab))
        finally:
            if lease is None:
                self._free(lab.lab_id)
        if lease is None:
            raise TooManyAtOnce
        return ConcurrencySlot(lab.lab_id, lease)

    def leave(self, slot: ConcurrencySlot) -> None:
        """Give a slot back."""
        self._free(slot.lab_id)
        self._leases.end(slot.lease)

    def _free(self, lab_id: str) -> None:
        self._held[lab_id] -= 1
        if self._held[lab_id] <= 0:
            del self._held[lab_id]


def _limits(lab: Lab) -> dict[str, int]:
    """The limits of the lab and of the key, by name."""
    given = {f"lab/{lab.lab_id}": lab.limits.concurrency, f"key/{lab.key_id}": lab.concurrency}
    return {name: most for name, most in given.items() if most is not None}
