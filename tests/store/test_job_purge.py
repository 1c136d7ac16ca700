"""What of jobs and files is deleted with time, with all that belongs to it, on both engines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reward_server.store.job_records import Chunk, FileRow, JobRow, JobStatus
from reward_server.store.store import Store
from tests.store.builders import NOW

DAY = timedelta(days=1)
LAB = "acme"


def a_file(number: int) -> FileRow:
    return FileRow(
        file_id=f"file_{number}",
        lab_id=LAB,
        name="talks.jsonl",
        size_bytes=2,
        lines=1,
        digest="d",
        is_complete=False,
        created_at=NOW,
    )


def a_job(number: int) -> JobRow:
    return JobRow(
        job_id=f"job_{number}",
        lab_id=LAB,
        key_id="k1",
        type="evaluate",
        status=JobStatus.QUEUED,
        file_id="file_1",
        params={},
        collections=None,
        full_scores=True,
        scopes=("score",),
        total=1,
        created_at=NOW,
    )


async def test_uploads_that_were_broken_off_go_with_their_lines(store_on_both: Store) -> None:
    store = store_on_both
    async with store.transaction() as unit:
        for row in (a_file(1), a_file(2), replace(a_file(3), created_at=NOW + 2 * DAY)):
            await unit.files.add(row)
            await unit.files.add_chunk(LAB, row.file_id, Chunk(0, 1, b"{}"))
        await unit.files.finish(a_file(1))
    async with store.transaction() as unit:
        assert await unit.files.purge(NOW + DAY) == 1
    async with store.reading() as unit:
        assert await unit.files.get(LAB, "file_1") is not None
        left = [await unit.files.lines(LAB, f"file_{number}", [0]) for number in (1, 2, 3)]
    assert left == [{0: b"{}"}, {}, {0: b"{}"}]


async def test_jobs_go_when_they_have_been_over_for_long(store_on_both: Store) -> None:
    store = store_on_both
    async with store.transaction() as unit:
        await unit.files.add(a_file(1))
        for number in (1, 2):
            await unit.jobs.add(a_job(number))
        await unit.jobs.cancel(LAB, "job_1", NOW)
    async with store.transaction() as unit:
        assert await unit.jobs.purge(NOW) == 0
        assert await unit.jobs.purge(NOW + DAY) == 1
    async with store.reading() as unit:
        assert await unit.jobs.get(LAB, "job_1") is None
        assert await unit.jobs.get(LAB, "job_2") is not None
