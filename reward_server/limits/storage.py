"""Storage of labs, in the database and as files, measured now and then, for those that have a quota."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from reward_server.auth.lab import Lab
from reward_server.errors import StorageExhausted
from reward_server.store.store import Store

MEASURED_EVERY_S = 60.0


class StorageQuota:
    """The storage of each lab with a quota when it was last measured."""

    def __init__(
        self,
        store: Store,
        folders: Callable[[str], Sequence[Path]] = lambda _lab_id: (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`folders`: where files of a lab lie that count besides what is in the database."""
        self._store = store
        self._folders = folders
        self._monotonic = monotonic
        self._measured: dict[str, tuple[float, int]] = {}

    async def require_room(self, lab: Lab) -> None:
        """`StorageExhausted` where the lab had stored all it may."""
        most = lab.limits.storage_bytes
        if most is None:
            return
        now = self._monotonic()
        at_s, stored = self._measured.get(lab.lab_id, (now - MEASURED_EVERY_S, 0))
        if now - at_s >= MEASURED_EVERY_S:
            async with self._store.reading() as work:
                stored = await work.disposal.stored_bytes(lab.lab_id)
            stored += await asyncio.to_thread(_bytes_in, self._folders(lab.lab_id))
            self._measured[lab.lab_id] = (now, stored)
            at_s = now
        if stored >= most:
            raise StorageExhausted(retry_after_s=int(MEASURED_EVERY_S - (now - at_s)) + 1)


def _bytes_in(folders: Sequence[Path]) -> int:
    total = 0
    for folder in folders:
        for place, _, names in os.walk(folder):  # which passes over folders that vanish
            for name in names:
                with suppress(OSError):  # deleted meanwhile
                    total += os.path.getsize(os.path.join(place, name))
    return total
