"""Last uses of keys: noted here, and written to the database once a minute for all keys together.

A server that is killed loses the last minute. Nothing of it is part of a request's own transaction.
"""

from __future__ import annotations

from datetime import datetime

from reward_server.clock import Clock
from reward_server.errors import StoreUnavailable
from reward_server.logs.logger import get_logger
from reward_server.shared_state.flushing import flush_every
from reward_server.store.store import Store

WRITE_EVERY_S = 60.0
log = get_logger(__name__)


class KeyUses:
    """The last use of keys since it was last written."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._fresh: dict[str, datetime] = {}

    def note(self, key_id: str) -> None:
        """A key was good for a call, now."""
        self._fresh[key_id] = self._clock.now()

    async def flush(self) -> None:
        """Write what was noted; while the database is away it is kept here."""
        fresh, self._fresh = self._fresh, {}
        if not fresh:
            return
        try:
            async with self._store.transaction() as work:
                await work.keys.note_use(fresh)
        except StoreUnavailable:
            self._fresh = fresh | self._fresh
            log.warning("key_uses_not_kept", keys=len(fresh))

    async def watch(self) -> None:
        """Flush once a minute, until cancelled."""
        await flush_every(WRITE_EVERY_S, self.flush)
