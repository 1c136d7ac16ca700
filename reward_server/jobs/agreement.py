"""Jobs of type `measure_agreement`: judges are measured on the rows of a file, in a process of its own.

What comes out is figures alone, as `labs judges agree` writes them; nothing is kept but the job's result.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_server.access import visible_collections
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.errors import Forbidden
from reward_server.jobs.kinds import JobItem, Record, WholeFile, Work
from reward_server.jobs.learning import DEADLINE_S
from reward_server.jobs.rows import RowsErrand
from reward_server.scoring.compose import RUBRIC
from reward_server.settings import Settings
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from scenarios.library import Catalog

MEASURE = "measure_agreement"
MOST_ROWS = 5_000


class MeasureAgreement:
    """Measures judges on a file of rows."""

    slice_size = 1

    def __init__(self, store: Store, settings: Settings, catalog: Catalog) -> None:
        self._errand = RowsErrand(store, settings.learning)
        self._settings = settings
        self._catalog = catalog
        self.whole = WholeFile(MOST_ROWS, DEADLINE_S)

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Other judges than the rubric are part of its breakdown: `Forbidden` for keys that do not see that."""
        judges = params.get("agreement", {}).get("judges") or [RUBRIC]
        if set(judges) != {RUBRIC} and not lab.full_scores and lab is not DEVELOPMENT_LAB:
            raise Forbidden(f"Only keys with full score access measure other judges than {RUBRIC}.")

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Have them measured; what is wrong with the rows fails the job."""
        [item] = items
        root = self._settings.scenarios
        order: JsonObject = {
            "collections": [found.card.slug for found in visible_collections(work.lab, self._catalog)],
            "collection_slug": work.params.get("collection_slug"),
            "scenario_slug": work.params.get("scenario_slug"),
            "data": str(self._settings.data),
            "scenarios": None if root is None else str(root),
            "encoder": self._settings.encoder,
            "options": work.params.get("agreement", {}),
        }
        await self._errand.run(MEASURE, order, work, item, record)
