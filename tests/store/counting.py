"""A writer that counts its commits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import event

from reward_server.store.engine import open_writing
from reward_server.store.thread import ConnectionThread
from reward_server.store.writer import Writer


@asynccontextmanager
async def counting_writer(url: str) -> AsyncIterator[tuple[Writer, list[int]]]:
    """A writer of its own, and one entry for each commit; closed at the end."""
    engine = open_writing(url, busy_timeout_s=0.05)
    commits: list[int] = []
    event.listen(engine, "commit", lambda _connection: commits.append(1))
    thread = ConnectionThread(engine, "writer")
    writer = Writer(thread)
    yield writer, commits
    await writer.close()
    await thread.close()
