"""Labs as an operator looks after them: make, change, measure, and delete what they stored. All of it is audited."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from reward_server.auth.actor import COMMAND_LINE, Actor
from reward_server.auth.key_ring import require_lab_id
from reward_server.clock import Clock
from reward_server.errors import Conflict, LabNotFound
from reward_server.shared_state.events import DATA_DELETED, LAB_CHANGED, Events, LocalEvents
from reward_server.store.records import LabLimitsRow, LabRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from scenarios.spelling import meant

_LEARNED = (("reward_model", "rm_*"), ("calibration", "cal_*.json"))
"""What is counted of a lab's files."""


class Tenants:
    """All labs of this server."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        events: Events | None = None,
        folders: Callable[[str], Sequence[Path]] = lambda _lab_id: (),
    ) -> None:
        """`folders`: where files of a lab lie: its reward models, its calibrations, what trainings have begun."""
        self._folders = folders
        self._store = store
        self._clock = clock
        self._events = LocalEvents() if events is None else events

    async def create(self, lab_id: str, name: str, limits: LabLimitsRow, by: Actor = COMMAND_LINE) -> LabRow:
        """Make a lab; `Conflict` if there is one of this id."""
        require_lab_id(lab_id)
        now = self._clock.now()
        row = LabRow(lab_id=lab_id, name=name, created_at=now, limits=limits)
        async with self._store.transaction() as work:
            if not await work.labs.add(row):
                raise Conflict("A lab with this id already exists.")
            await work.audit.add(by.did(now, "lab.created", lab_id))
        return row

    async def ensure(self, lab_id: str, by: Actor = COMMAND_LINE) -> None:
        """Make a lab where there is none of this id."""
        with suppress(Conflict):
            await self.create(lab_id, "", LabLimitsRow(), by)

    async def change(
        self, lab_id: str, *, name: str | None = None, limits: LabLimitsRow | None = None, by: Actor = COMMAND_LINE
    ) -> LabRow:
        """Give it another name or other limits; running servers notice within a second."""
        async with self._store.transaction() as work:
            row = await work.labs.get(lab_id)
            if row is None:
                raise await _unknown(work, lab_id)
            row = replace(row, name=row.name if name is None else name, limits=limits or row.limits)
            await work.labs.change(row)
            await work.audit.add(by.did(self._clock.now(), "lab.changed", lab_id))
        await self._events.tell(LAB_CHANGED, lab_id)
        return row

    async def get(self, lab_id: str) -> LabRow:
        """The lab; `LabNotFound`, which names one that is near, if there is none."""
        async with self._store.reading() as work:
            row = await work.labs.get(lab_id)
            if row is None:
                raise await _unknown(work, lab_id)
        return row

    async def list(self) -> list[LabRow]:
        """All of them, by their ids."""
        async with self._store.reading() as work:
            return await work.labs.list()

    async def delete_data(self, lab_id: str, by: Actor = COMMAND_LINE) -> dict[str, int]:
        """Delete all conversations of a lab, and what was learned from them, for good; how many there were of each."""
        await self.get(lab_id)
        learned = await asyncio.to_thread(_forgotten, self._folders(lab_id))
        async with self._store.transaction() as work:
            deleted = {**await work.disposal.delete(lab_id), **learned}
            counts = " ".join(f"{name}={count}" for name, count in deleted.items())
            await work.audit.add(by.did(self._clock.now(), "data.deleted", f"{lab_id} {counts}".strip()))
        await self._events.tell(DATA_DELETED, lab_id)
        return deleted

    async def expire(self) -> dict[str, int]:
        """Delete what labs do not let be kept any longer; rows by lab."""
        expired: dict[str, int] = {}
        for row in await self.list():
            if row.limits.retention_days is not None:
                before = self._clock.now() - timedelta(days=row.limits.retention_days)
                async with self._store.transaction() as work:
                    deleted = await work.disposal.delete(row.lab_id, before=before)
                if deleted:
                    expired[row.lab_id] = sum(deleted.values())
                    await self._events.tell(DATA_DELETED, row.lab_id)
        return expired


async def _unknown(work: UnitOfWork, lab_id: str) -> LabNotFound:
    known = [row.lab_id for row in await work.labs.list()]
    return LabNotFound(LabNotFound.default_message + meant(lab_id, known))


def _forgotten(folders: Sequence[Path]) -> dict[str, int]:
    """Delete folders of a lab; how many models and calibrations lay there."""
    counts = Counter(name for folder in folders for name, pattern in _LEARNED for _ in folder.glob(pattern))
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
    return dict(counts)
