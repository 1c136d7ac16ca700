"""Jobs as labs use them: submit, look, cancel, resume, retry, read results. Workers do the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic_core import to_json

from reward_server.access import require_all_of, scored_for_key
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import in_order
from reward_server.clock import Clock, next_midnight, to_iso
from reward_server.errors import Conflict, FieldProblem, InvalidRequest, JobNotFound, TooManyAtOnce
from reward_server.ids import IdPrefix, is_id, new_id
from reward_server.jobs.files import FileService
from reward_server.jobs.kinds import CollectingKind, JobKind
from reward_server.jobs.report import report
from reward_server.store.job_records import FileRow, JobRow, JobStatus
from reward_server.store.records import JsonObject, PageEnd
from reward_server.store.store import Store
from trainer_client.wire import JobRequest

OPEN_JOBS = 50
"""Of one lab."""
RESULTS_AT_ONCE = 200
ONE_INPUT = "Give either file_id or items."
GIVEN = "items of a job"
"""The name of a file that was made of them."""


@dataclass(frozen=True)
class Submission:
    """A job that can be done: its input is stored."""

    file_id: str
    total: int


class JobService:
    """The jobs of labs."""

    def __init__(
        self,
        *,
        store: Store,
        files: FileService,
        kinds: Mapping[str, JobKind],
        idempotency: Idempotency,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._files = files
        self._kinds = kinds
        self._idempotency = idempotency
        self._clock = clock
        self._wake = wake

    async def submit(self, lab: Lab, request: JobRequest, key: str | None) -> Body:
        """Queue a job."""
        kind = self._kinds.get(request.type)
        if kind is None:
            raise InvalidRequest(errors=[FieldProblem(("type",), "This server does not run jobs of this type.")])
        params = request.model_dump(exclude={"type", "file_id", "items"}, exclude_unset=True, exclude_none=True)
        await kind.check(lab, params)

        async def work(keep: Keep) -> Body:
            given = await self._input(lab, request, params)
            row = self._row(lab, request.type, params, given)
            body = document(row, self._clock.now())
            async with self._store.transaction() as unit:
                if await unit.jobs.count_open(lab.lab_id) >= OPEN_JOBS:
                    told = f"This lab has {OPEN_JOBS} unfinished jobs; wait for one, or cancel one."
                    raise TooManyAtOnce(told, retry_after_s=60)
                await unit.jobs.add(row)
                await keep(unit, body)
            self._wake()
            return body

        return await self._idempotency.answer(lab, key, lambda: ("jobs", request.model_dump()), work)

    async def get(self, lab: Lab, job_id: str) -> Body:
        """Return the state of a job."""
        [shown] = await self.shown(lab, [await self.find(lab, job_id)])
        return shown

    async def shown(self, lab: Lab, rows: Sequence[JobRow]) -> list[Body]:
        """Return the states of jobs of the lab."""
        asked = [row.job_id for row in rows if row.status is JobStatus.RUNNING and self._is_whole(row)]
        noted: Mapping[str, JsonObject] = {}
        if asked:
            async with self._store.reading() as unit:
                noted = await unit.jobs.noted(lab.lab_id, asked)
        now = self._clock.now()
        return [document(row, now) | noted.get(row.job_id, {}) for row in rows]

    def _is_whole(self, row: JobRow) -> bool:
        kind = self._kinds.get(row.type)
        return kind is not None and kind.whole is not None

    async def find(self, lab: Lab, job_id: str) -> JobRow:
        """The lab's job.

        Raises:
            JobNotFound: the lab has none of that id.
            Forbidden: the key that submitted it may use collections that this one may not.
        """
        row = None
        if is_id(job_id, IdPrefix.JOB):
            async with self._store.reading() as unit:
                row = await unit.jobs.get(lab.lab_id, job_id)
        if row is None:
            raise JobNotFound
        require_all_of(lab, row.collections, "job")
        return row

    async def page(self, lab: Lab, limit: int, after: PageEnd | None) -> list[JobRow]:
        """The lab's jobs that `find` finds, newest first."""
        async with self._store.reading() as unit:
            return await unit.jobs.page(lab.lab_id, limit, after, collections=lab.collections)

    async def cancel(self, lab: Lab, job_id: str) -> Body:
        """Stop a job: nothing is recorded any more. One that is over stays as it is."""
        await self.find(lab, job_id)
        async with self._store.transaction() as unit:
            await unit.jobs.cancel(lab.lab_id, job_id, self._clock.now())
        return await self.get(lab, job_id)

    async def resume(self, lab: Lab, job_id: str) -> Body:
        """Go on with a job that was cancelled; finished items stay finished."""
        row = await self.find(lab, job_id)
        async with self._store.transaction() as unit:
            moved = await unit.jobs.resume(lab.lab_id, job_id)
        if not moved and not row.is_open:
            raise Conflict("Only a job that was cancelled can be resumed.")
        self._wake()
        return await self.get(lab, job_id)

    async def retry(self, lab: Lab, job_id: str) -> Body:
        """Retry the dead items of a job."""
        row = await self.find(lab, job_id)
        if row.dead == 0:
            raise Conflict("This job has no dead items.")
        async with self._store.transaction() as unit:
            moved = await unit.jobs.retry_dead(lab.lab_id, job_id, self._clock.now())
        if not moved:
            raise Conflict("The job has not ended yet.")
        self._wake()
        return await self.get(lab, job_id)

    async def report(self, lab: Lab, job_id: str) -> Body:
        """Sum up the finished items."""
        row = await self.find(lab, job_id)
        return {"job_id": job_id, **await report(row.type, self.results(lab, job_id))}

    async def results(self, lab: Lab, job_id: str, after: int = -1) -> AsyncIterator[JsonObject]:
        """The outcomes of the items that are finished so far, in their order."""
        while True:
            async with self._store.reading() as unit:
                piece = await unit.jobs.results(lab.lab_id, job_id, after, RESULTS_AT_ONCE)
            for _, result in piece:
                yield scored_for_key(lab, result)
            if len(piece) < RESULTS_AT_ONCE:
                return
            after = piece[-1][0]

    async def _input(self, lab: Lab, request: JobRequest, params: JsonObject) -> Submission:
        kind = self._kinds[request.type]
        if isinstance(kind, CollectingKind) and (request.items is not None or request.file_id is not None):
            kind.check_input(params)
        if request.items is not None and request.file_id is not None:
            raise InvalidRequest(errors=[FieldProblem(("items",), ONE_INPUT)])
        if request.file_id is not None:
            file = await self._files.find(lab, request.file_id)
        elif request.items is not None:
            file = await self._files.store(lab, GIVEN, _lines(request.items))
        elif isinstance(kind, CollectingKind):
            file = await self._files.store(lab, GIVEN, kind.collect(lab, params))
        else:
            raise InvalidRequest(errors=[FieldProblem(("items",), ONE_INPUT)])
        return Submission(file.file_id, _total(kind, file))

    def _row(self, lab: Lab, job_type: str, params: JsonObject, given: Submission) -> JobRow:
        return JobRow(
            job_id=new_id(IdPrefix.JOB),
            lab_id=lab.lab_id,
            key_id=lab.key_id,
            type=job_type,
            status=JobStatus.QUEUED,
            file_id=given.file_id,
            params=params,
            collections=lab.collections,
            full_scores=lab.full_scores,
            scopes=tuple(scope.value for scope in in_order(lab.scopes)),
            total=given.total,
            created_at=self._clock.now(),
        )


def _total(kind: JobKind, file: FileRow) -> int:
    """The number of items of a file; `InvalidRequest` where it has too many lines."""
    if kind.whole is None:
        return file.lines
    if file.lines > kind.whole.most_lines:
        raise InvalidRequest(f"Such a job takes {kind.whole.most_lines:,} rows at most; these are {file.lines:,}.")
    return 1


def document(row: JobRow, now: datetime) -> Body:
    """A job as it is shown."""
    body: Body = {
        "job_id": row.job_id,
        "type": row.type,
        "status": row.status.value,
        "file_id": row.file_id,
        "counts": {
            "total": row.total,
            "done": row.done,
            "failed": row.failed,
            "dead": row.dead,
            "remaining": row.total - row.finished_items,
        },
        "progress": round(row.finished_items / row.total, 4),
        "created_at": to_iso(row.created_at),
    }
    for name in ("started_at", "finished_at"):
        moment = getattr(row, name)
        if moment is not None:
            body[name] = to_iso(moment)
    midnight = _waits_until(row)
    if row.is_open and midnight is None and row.started_at is not None and row.finished_items:
        pace = (now - row.started_at).total_seconds() / row.finished_items
        body["eta_s"] = round(pace * (row.total - row.finished_items), 1)
    if midnight is not None and midnight > now:  # after it the job is in the queue as any other
        body |= {"waits_for": row.rests_for, "waits_until": to_iso(midnight)}
    if row.error is not None:
        body["error"] = row.error
    return body


def _waits_until(row: JobRow) -> datetime | None:
    """The midnight that a job waits for whose lab has used up its day; None for others."""
    if row.status is not JobStatus.QUEUED or row.rests_for is None or row.rests_until is None:
        return None
    # It is looked at before, too; where that is midnight, it is the midnight that it waits for.
    return next_midnight(row.rests_until - timedelta(microseconds=1))


async def _lines(items: list[JsonObject]) -> AsyncIterator[bytes]:
    for item in items:
        yield to_json(item) + b"\n"
