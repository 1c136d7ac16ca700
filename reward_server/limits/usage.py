"""Usage of labs, counted here and added to the database every few seconds; and the day's total, for budgets.

A server that is killed loses the last seconds of what it counted. With several servers each knows what the others have
counted when it last added its own.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Protocol

from reward_server.clock import Clock, until_midnight_s
from reward_server.errors import StoreUnavailable
from reward_server.logs.logger import get_logger
from reward_server.shared_state.flushing import flush_every
from reward_server.store.records import UsageRow
from reward_server.store.store import Store

FLUSH_S = 5.0
log = get_logger(__name__)
_Key = tuple[str, date]


class ReadingCounter(Protocol):
    """Counts what was read for a lab."""

    def __call__(self, characters: int, *, turns: int = 0) -> None:
        """Count these characters, and the turns of episodes that they are."""


class UsageMeter:
    """Counts for all labs."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._fresh: dict[_Key, UsageRow] = {}
        """Not added yet."""
        self._kept: dict[_Key, UsageRow] = {}
        """Totals of the database when they were last added to."""

    def count(
        self, lab_id: str, *, requests: int = 0, turns: int = 0, evaluations: int = 0, characters: int = 0
    ) -> None:
        """Add to the lab's day."""
        key = (lab_id, self._clock.now().date())
        row = self._fresh.get(key) or UsageRow(lab_id=lab_id, day=key[1])
        self._fresh[key] = replace(
            row,
            requests=row.requests + requests,
            turns=row.turns + turns,
            evaluations=row.evaluations + evaluations,
            characters=row.characters + characters,
        )

    def characters_today(self, lab_id: str) -> int:
        """The characters that the lab has had read today, as far as is known here."""
        key = (lab_id, self._clock.now().date())
        return sum(rows[key].characters for rows in (self._fresh, self._kept) if key in rows)

    async def read_today(self, lab_id: str) -> int:
        """The same as all servers have counted it, with what is not added yet here."""
        today = self._clock.now().date()
        async with self._store.reading() as work:
            kept = await work.usage.of(lab_id, today)
        fresh = self._fresh.get((lab_id, today))
        return sum(row.characters for row in kept) + (0 if fresh is None else fresh.characters)

    def until_tomorrow_s(self) -> int:
        """Seconds until midnight (UTC), rounded up."""
        return until_midnight_s(self._clock.now())

    async def flush(self) -> None:
        """Add what was counted to the database; while that is away it is kept here."""
        fresh, self._fresh = self._fresh, {}
        if not fresh:
            return
        try:
            async with self._store.transaction() as work:
                totals = await work.usage.add_many(list(fresh.values()))
        except StoreUnavailable:
            for row in fresh.values():
                self._take_back(row)
            log.warning("usage_not_kept", labs=len(fresh))
            return
        today = self._clock.now().date()
        self._kept = {key: row for key, row in self._kept.items() if key[1] == today}
        self._kept |= {(row.lab_id, row.day): row for row in totals}

    async def watch(self) -> None:
        """Flush now and then, until cancelled."""
        await flush_every(FLUSH_S, self.flush)

    def _take_back(self, row: UsageRow) -> None:
        key = (row.lab_id, row.day)
        newer = self._fresh.get(key)
        if newer is None:
            self._fresh[key] = row
            return
        self._fresh[key] = replace(
            row,
            requests=row.requests + newer.requests,
            turns=row.turns + newer.turns,
            evaluations=row.evaluations + newer.evaluations,
            characters=row.characters + newer.characters,
        )
