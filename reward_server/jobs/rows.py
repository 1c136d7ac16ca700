"""Writes an uploaded file to the disk, for work that is done in a process of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from reward_server.jobs.kinds import Work
from reward_server.store.store import Store

ROWS_AT_ONCE = 256


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
