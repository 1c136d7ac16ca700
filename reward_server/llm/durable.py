"""The store as language models need it: spending that a restart does not forget, and decisions that outlive it.

Each call is a transaction of its own, and none is open while a model is being asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from reward_server.clock import Clock
from reward_server.store.records import BookingRow, Ceiling, LabLimitsRow, Spend
from reward_server.store.store import Store


class StoredLedger:
    """A `Ledger` in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        """Book if it fits, into what the lab may spend by itself where that is said."""
        async with self._store.transaction() as work:
            lab = await work.labs.get(booking.lab_id)
            own = ceiling if lab is None else _own(lab.limits, ceiling)
            return None if await work.spending.book(booking, now, own) else own

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        """Charge what was used in the place of a booking."""
        async with self._store.transaction() as work:
            await work.spending.settle(booking, used, calls=calls)


def _own(limits: LabLimitsRow, ceiling: Ceiling) -> Ceiling:
    """The ceiling of this lab: its own limits where it has some."""
    return Ceiling(
        tokens=ceiling.tokens if limits.tokens_per_day is None else limits.tokens_per_day,
        nano_usd=ceiling.nano_usd if limits.nano_usd_per_day is None else limits.nano_usd_per_day,
    )


class StoredVerdicts:
    """The store of verdicts, by key; raises `StoreUnavailable`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of these keys; those without one are missing."""
        async with self._store.reading() as work:
            return await work.llm_answers.get_many(keys)

    async def put_many(self, bodies: Mapping[str, str]) -> None:
        """Keep these; a key that is there already keeps its body."""
        async with self._store.transaction() as work:
            await work.llm_answers.put_many(bodies, self._clock.now())

    async def replace(self, key: str, damaged: str, body: str) -> None:
        """Put a body in the place of a damaged one, unless somebody else has done so."""
        async with self._store.transaction() as work:
            await work.llm_answers.replace(key, damaged, body, self._clock.now())
