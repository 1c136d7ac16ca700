"""Jobs of type `check_scenarios`: a version of a lab's own collection is played and examined in a process of its own.

The job says whether it passed. What was found speaks of the private half, so it is kept with the version, where its
author alone can read it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.jobs.kinds import JobItem, Record, WholeFile, Work, failed, record_alone, succeeded
from reward_server.jobs.learning import DEADLINE_S
from reward_server.jobs.subprocess import DataRefused, run
from reward_server.settings import Settings
from reward_server.store.own_collection_records import CheckStatus
from reward_server.store.records import JsonObject
from reward_server.store.store import Store

CHECK = "check_scenarios"
GONE = "This version is not there any more."


class CheckScenarios:
    """Examines a version."""

    slice_size = 1

    def __init__(self, store: Store, settings: Settings, changed: Callable[[], Awaitable[None]]) -> None:
        """`changed` is told that another version is in use."""
        self._store = store
        self._settings = settings
        self._changed = changed
        self.whole = WholeFile(1, DEADLINE_S)

    async def check(self, lab: Lab, _params: JsonObject) -> None:
        """Refuse a key that brings no scenarios."""
        lab.require(Scope.AUTHOR)

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Examine it, and put it to use if it passes."""
        [item] = items
        async with self._store.reading() as unit:
            lines = await unit.files.lines(work.lab.lab_id, work.file_id, range(1))
        wanted = json.loads(lines[0])
        slug, version = str(wanted.get("collection")), int(wanted.get("version", 0))
        async with self._store.reading() as unit:
            row = await unit.own_collections.get(work.lab.lab_id, slug, version)
        if row is None:
            await record_alone(self._store, record, [failed(item.index, "collection_not_found", GONE)])
            return
        order: JsonObject = {"slug": slug, "files": row.files, "encoder": self._settings.encoder}
        made = await run(CHECK, order, work.note)
        if isinstance(made, DataRefused):
            made = {"passed": False, "findings": [made.message]}
        passed = bool(made["passed"])
        told = {"collection": slug, "version": version, "passed": passed, "findings": len(made["findings"])}
        async with self._store.transaction() as unit:
            await unit.own_collections.settle(
                row, CheckStatus.PASSED if passed else CheckStatus.FAILED, made["findings"]
            )
            await record(unit, [succeeded(item.index, told)])
        await self._changed()
