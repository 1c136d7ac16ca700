"""Puts the scenarios that labs brought beside those that everybody may use, and takes them away again.

The database decides which version is in use. A replica hears of changes from the others, and looks now and then
besides: a word may get lost, and a worker without Redis hears none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from reward_server.errors import LabsError
from reward_server.logs.logger import get_logger
from reward_server.scoring.scorer import Scorer
from reward_server.store.own_collection_records import OwnCollectionRow
from reward_server.store.store import Store
from scenarios.library import Library
from scenarios.own import Brought, own_name, read_own

LOOK_EVERY_S = 30.0

log = get_logger(__name__)


class OwnShelf:
    """The scenarios of labs, as this process knows them."""

    def __init__(self, store: Store, library: Library, scorer: Scorer) -> None:
        self._store = store
        self._library = library
        self._scorer = scorer
        self._shown: dict[str, str] = {}
        """The digests of what is in use, by name."""
        self._turnstile = asyncio.Lock()

    async def refresh(self) -> None:
        """Bring what is known here up to what the database says."""
        async with self._turnstile:
            async with self._store.reading() as unit:
                rows = await unit.own_collections.in_use()
            wanted = {own_name(row.slug, row.lab_id): row for row in rows}
            for name in self._shown.keys() - wanted.keys():
                self._take_away(name)
            for name, row in wanted.items():
                if self._shown.get(name) != row.digest:
                    async with self._store.reading() as unit:
                        whole = await unit.own_collections.get(row.lab_id, row.slug, row.version)
                    if whole is not None:
                        await self._show(name, whole)

    async def follow(self) -> None:
        """Look now and then, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.refresh()
            except LabsError:
                log.warning("own_scenarios_not_read")

    async def _show(self, name: str, row: OwnCollectionRow) -> None:
        brought, findings = await asyncio.to_thread(read_own, row.slug, row.lab_id, row.files, row.digest)
        problem = None if brought is None else self.problem(brought)
        if brought is None or problem:
            # It passed once; this server has other judges, or reads more strictly. Nothing of it is told.
            log.warning("own_scenarios_not_usable", collection=name, findings=len(findings))
            self._take_away(name)
            self._shown[name] = row.digest
            return
        self._library.vault.put(name, brought.sealed)
        self._library.catalog.collections[name] = brought.card
        self._shown[name] = row.digest

    def problem(self, brought: Brought) -> str | None:
        """What this server lacks to score them."""
        found: Sequence[str | None] = [self._scorer.problem(each) for each in brought.sealed]
        return next((each for each in found if each), None)

    def _take_away(self, name: str) -> None:
        self._library.catalog.collections.pop(name, None)
        self._library.vault.put(name, ())
        self._shown.pop(name, None)
