"""Jobs of type `evaluate`: every line is a request of POST /evaluate, scored as `/batch/evaluate` would."""

from __future__ import annotations

from collections.abc import Sequence

from reward_server.access import scenario_for
from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.errors import InvalidRequest, TooMuchText
from reward_server.evaluations.service import BatchEntry, EvaluationService, InvalidEntry
from reward_server.jobs.kinds import JobItem, LineReader, Record, Work, failed, succeeded
from reward_server.store.job_records import ItemOutcome
from reward_server.store.records import JsonObject
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.transcripts.weight import weight_of
from scenarios.library import Catalog
from trainer_client.wire import BatchItem

OWN = ("id",)


class EvaluateItems:
    """Scores conversations."""

    slice_size = 16
    whole = None

    def __init__(self, evaluations: EvaluationService, catalog: Catalog, lines: LineReader) -> None:
        self._evaluations = evaluations
        self._catalog = catalog
        self._lines = lines

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Refuse a scenario that the lines could not use."""
        check_scenario(lab, self._catalog, params)

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Score these lines in one pass; the evaluations are stored with their results."""
        entries = [await self._entry(item, work.params) for item in items]

        async def keep(unit: UnitOfWork, body: Body) -> None:
            results = zip(items, entries, body["results"], strict=True)
            await record(unit, [_outcome(item, entry, result) for item, entry, result in results])

        await self._evaluations.batch_for_a_job(work.lab, entries, keep)

    async def _entry(self, item: JobItem, params: JsonObject) -> BatchEntry:
        # Ids of lines may be equal; within a slice they are told apart by their place.
        try:
            entry = await self._lines.read(BatchItem, item.line, {"id": str(item.index), **params})
            weight_of(entry.messages)
        except (InvalidRequest, TooMuchText) as error:
            return InvalidEntry(str(item.index), error)
        return entry


def _outcome(item: JobItem, entry: BatchEntry, result: Body) -> ItemOutcome:
    if result["status"] == "error":
        return failed(item.index, result["code"], result["message"], entry.id)
    return succeeded(item.index, {"id": entry.id, **_without(result, "id", "status")})


def _without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def check_scenario(lab: Lab, catalog: Catalog, params: JsonObject) -> None:
    """Refuse defaults that name what there is not, or what the key may not use."""
    collection, scenario = params.get("collection_slug"), params.get("scenario_slug")
    if collection is not None and scenario is not None:
        scenario_for(lab, catalog, collection, scenario)
