"""Has a job's uploaded file worked on in a process of its own, in a folder that lasts until the job is over."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from reward_server.auth.lab import Lab
from reward_server.folders import make_private
from reward_server.jobs.kinds import JobItem, Record, Work, failed, record_alone, succeeded
from reward_server.jobs.subprocess import DataRefused, run
from reward_server.ownership import of_lab
from reward_server.store.records import JsonObject
from reward_server.store.store import Store

ROWS_AT_ONCE = 256


class RowsErrand:
    """Has an errand done on the rows of a job, and records what became of it."""

    def __init__(self, store: Store, folder: Path) -> None:
        """`folder` is that of all labs; a lab's jobs have theirs below it."""
        self._store = store
        self._folder = folder

    async def run(self, errand: str, order: JsonObject, work: Work, item: JobItem, record: Record) -> None:
        """The order is given `rows`, a file, and `place`, a folder; what is wrong with the rows fails the job."""
        place = own_folder(self._folder, work.lab) / work.job_id
        rows = place / "rows.jsonl"
        await asyncio.to_thread(make_private, place)
        await write_rows(self._store, work, rows)
        made = await run(errand, {**order, "rows": str(rows), "place": str(place)}, work.note)
        outcome = (
            failed(item.index, made.code, made.message)
            if isinstance(made, DataRefused)
            else succeeded(item.index, made)
        )
        await record_alone(self._store, record, [outcome])
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def own_folder(folder: Path, lab: Lab) -> Path:
    """The lab's part of a folder."""
    own = of_lab(folder, lab.lab_id)
    assert own is not None, "labs have ids that can be names of folders"
    return own


async def write_rows(store: Store, work: Work, path: Path) -> None:
    """The rows of the job's file, whole or not at all. What is read counts for the lab."""
    draft, first = path.with_suffix(".new"), 0
    await asyncio.to_thread(draft.write_bytes, b"")
    while True:
        async with store.reading() as unit:
            lines = await unit.files.lines(work.lab.lab_id, work.file_id, range(first, first + ROWS_AT_ONCE))
        if not lines:
            break
        text = b"".join(lines[number] + b"\n" for number in sorted(lines))
        work.read(len(text))
        await asyncio.to_thread(_append, draft, text)
        first += ROWS_AT_ONCE
    draft.replace(path)


def _append(path: Path, text: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(text)
