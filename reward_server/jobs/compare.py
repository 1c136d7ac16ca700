"""Jobs of type `compare`: every line is a request of POST /compare, with an `id` of its own if it likes."""

from __future__ import annotations

from collections.abc import Sequence

from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.errors import LabsError, LeaseLost, StoreUnavailable
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.evaluate import check_scenario
from reward_server.jobs.kinds import JobItem, LineReader, Record, Work, failed_by, record_alone, succeeded
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.transcripts.weight import weight_of_all
from scenarios.library import Catalog
from trainer_client.wire import CompareRequest


class CompareItems:
    """Compares conversations, pair by pair."""

    slice_size = 8
    whole = None

    def __init__(self, evaluations: EvaluationService, catalog: Catalog, lines: LineReader, store: Store) -> None:
        self._evaluations = evaluations
        self._catalog = catalog
        self._lines = lines
        self._store = store

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Refuse a scenario that the lines could not use."""
        check_scenario(lab, self._catalog, params)

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Compare these pairs; each is stored with its result."""
        for item in items:
            try:
                await self._compare(work.lab, work.params, item, record)
            except (LeaseLost, StoreUnavailable):
                raise
            except LabsError as error:
                await record_alone(self._store, record, [failed_by(item.index, error)])

    async def _compare(self, lab: Lab, params: JsonObject, item: JobItem, record: Record) -> None:
        item_id, request = await self._lines.read_named(CompareRequest, item, params)
        weight_of_all((request.response_a.messages, request.response_b.messages))

        async def keep(unit: UnitOfWork, body: Body) -> None:
            await record(unit, [succeeded(item.index, {"id": item_id, **body})])

        await self._evaluations.compare_for_a_job(lab, request, keep)
