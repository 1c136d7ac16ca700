"""The standing of a job after the outcomes of its items: counts, the end of the job, and the end of a wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, update

from reward_server.store.job_records import ItemOutcome, ItemState, JobRow, JobStatus
from reward_server.store.tables import JobItemTable, JobTable, table_of

GOES_ON: dict[str, object] = {"status": JobStatus.RUNNING, "rests_until": None, "rests_for": None}
"""What changes of a job that waited, once something of it was done."""

_JOB = table_of(JobTable)
_ITEM = table_of(JobItemTable)
_RECORD = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.item_index == bindparam("this_item"),
    )
    .values({name: bindparam(name) for name in ("state", "lease", "lease_until", "result")})
)
_STANDING = (
    "status",
    "next_index",
    "done",
    "failed",
    "dead",
    "error",
    "started_at",
    "finished_at",
    "served_at",
    "rests_until",
    "rests_for",
)
"""What workers change of a job."""
_SAVE = (
    update(_JOB)
    .where(_JOB.c.lab_id == bindparam("this_lab"), _JOB.c.job_id == bindparam("this_job"))
    .values({name: bindparam(name) for name in _STANDING})
)


def write_outcomes(connection: Connection, job: JobRow, outcomes: Sequence[ItemOutcome]) -> None:
    """Write down what became of items."""
    connection.execute(_RECORD, [_recorded(job, outcome) for outcome in outcomes])


def counted(
    connection: Connection, job: JobRow, outcomes: Sequence[ItemOutcome], now: datetime, *, goes_on: bool = False
) -> JobRow:
    """The job with these outcomes in its counts; over when every item has one. One that `goes_on` waits no longer."""
    changes: dict[str, object] = dict(GOES_ON) if goes_on else {}
    changes |= {
        name: getattr(job, name) + sum(outcome.state is state for outcome in outcomes)
        for name, state in (("done", ItemState.DONE), ("failed", ItemState.FAILED), ("dead", ItemState.DEAD))
    }
    if sum(int(str(changes[name])) for name in ("done", "failed", "dead")) >= job.total:
        changes |= {**GOES_ON, "status": JobStatus.COMPLETED, "finished_at": now}
        if not changes["done"]:
            changes |= {"status": JobStatus.FAILED, "error": _why(job, outcomes)}
    return saved(connection, job, changes)


def _why(job: JobRow, outcomes: Sequence[ItemOutcome]) -> str:
    """The reason why a job came to nothing, in a line: what its item says, or the one of many that ended it."""
    message = str((outcomes[-1].result or {}).get("message", ""))
    return message if job.total == 1 else f"None of the {job.total:,} items has a result; the last to end: {message}"


def saved(connection: Connection, job: JobRow, changes: dict[str, object]) -> JobRow:
    """The job with these changes, which are written down."""
    changed = replace(job, **changes)  # type: ignore[arg-type]
    connection.execute(_SAVE, {**place_of(job), **{name: getattr(changed, name) for name in _STANDING}})
    return changed


def place_of(job: JobRow) -> dict[str, object]:
    """Its lab and id, as the statements that change something call them."""
    return {"this_lab": job.lab_id, "this_job": job.job_id}


def _recorded(job: JobRow, outcome: ItemOutcome) -> dict[str, object]:
    return {
        **place_of(job),
        "this_item": outcome.index,
        "state": outcome.state,
        "lease": None,
        "lease_until": outcome.not_before,
        "result": outcome.result,
    }
