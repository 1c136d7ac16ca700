"""Uploaded JSONL files, in chunks of whole lines, so that any line can be had without reading the file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.job_records import OPEN, Chunk, FileRow
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after, made_with
from reward_server.store.records import PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import FileChunkTable, FileTable, JobTable, table_of

_FILE = table_of(FileTable)
_CHUNK = table_of(FileChunkTable)
_JOB = table_of(JobTable)
_ADD = insert(_FILE)
_ADD_CHUNK = insert(_CHUNK)
_GET = select(_FILE).where(_FILE.c.lab_id == bindparam("lab_id"), _FILE.c.file_id == bindparam("file_id"))
_FINISH = (
    update(_FILE)
    .where(_FILE.c.lab_id == bindparam("this_lab"), _FILE.c.file_id == bindparam("this_file"))
    .values({name: bindparam(name) for name in ("size_bytes", "lines", "digest", "is_complete")})
)
_CHUNKS = (
    select(_CHUNK.c.first_line, _CHUNK.c.lines, _CHUNK.c.data)
    .where(
        _CHUNK.c.lab_id == bindparam("lab_id"),
        _CHUNK.c.file_id == bindparam("file_id"),
        _CHUNK.c.first_line <= bindparam("last"),
        _CHUNK.c.first_line + _CHUNK.c.lines > bindparam("first"),
    )
    .order_by(_CHUNK.c.first_line)
)
_SIZE = select(func.coalesce(func.sum(_FILE.c.size_bytes), 0)).where(_FILE.c.lab_id == bindparam("lab_id"))
_USED = select(func.count()).where(
    _JOB.c.lab_id == bindparam("lab_id"), _JOB.c.file_id == bindparam("file_id"), _JOB.c.status.in_(OPEN)
)
_DELETE = delete(_FILE).where(_FILE.c.lab_id == bindparam("this_lab"), _FILE.c.file_id == bindparam("this_file"))
_PURGE = across_labs(
    delete(_FILE).where(_FILE.c.is_complete.is_(False), _FILE.c.created_at < bindparam("before")),
)


class FileRepository:
    """Files of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: FileRow) -> None:
        """Begin a file."""
        await self._session.run(lambda connection: connection.execute(_ADD, values_of(row)))

    async def add_chunk(self, lab_id: str, file_id: str, chunk: Chunk) -> None:
        """The next lines of a file."""
        values = {"lab_id": lab_id, "file_id": file_id, **values_of(chunk)}
        await self._session.run(lambda connection: connection.execute(_ADD_CHUNK, values))

    async def finish(self, row: FileRow) -> None:
        """From now on the file can be used."""
        values: dict[str, object] = {"this_lab": row.lab_id, "this_file": row.file_id}
        values |= {"size_bytes": row.size_bytes, "lines": row.lines, "digest": row.digest, "is_complete": True}
        await self._session.run(lambda connection: connection.execute(_FINISH, values))

    async def get(self, lab_id: str, file_id: str) -> FileRow | None:
        """The lab's file, if its upload was completed."""

        def work(connection: Connection) -> FileRow | None:
            row = connection.execute(_GET, {"lab_id": lab_id, "file_id": file_id}).mappings().one_or_none()
            return FileRow(**row) if row is not None and row["is_complete"] else None

        return await self._session.run(work)

    async def lines(self, lab_id: str, file_id: str, indexes: Sequence[int]) -> dict[int, bytes]:
        """Some lines of a file, by their index."""
        wanted = {"lab_id": lab_id, "file_id": file_id, "first": min(indexes), "last": max(indexes)}

        def work(connection: Connection) -> dict[int, bytes]:
            lines: dict[int, bytes] = {}
            for chunk in connection.execute(_CHUNKS, wanted):
                for offset, line in enumerate(chunk.data.split(b"\n")):
                    if chunk.first_line + offset in indexes:
                        lines[chunk.first_line + offset] = line
            return lines

        return await self._session.run(work)

    async def page(
        self, lab_id: str, limit: int, after: PageEnd | None = None, *, collections: Sequence[str] | None = None
    ) -> list[FileRow]:
        """The lab's files, newest first.

        `collections`: only those that were made with no other collections; None: all.
        """
        rows = select(_FILE).where(_FILE.c.lab_id == lab_id, _FILE.c.is_complete.is_(True))
        if after is not None:
            rows = rows.where(is_after(_FILE.c.created_at, _FILE.c.file_id, after))
        if collections is not None:
            rows = rows.where(made_with(_FILE.c.collections, collections))
        rows = rows.order_by(_FILE.c.created_at.desc(), _FILE.c.file_id.desc()).limit(limit)
        return await self._session.run(
            lambda connection: [FileRow(**mapping) for mapping in connection.execute(rows).mappings()]
        )

    async def stored_bytes(self, lab_id: str) -> int:
        """The bytes that the lab has stored, uploads that are under way included."""
        return await self._session.run(
            lambda connection: int(connection.execute(_SIZE, {"lab_id": lab_id}).scalar_one())
        )

    async def is_in_use(self, lab_id: str, file_id: str) -> bool:
        """True if a job that is not over reads it."""
        wanted = {"lab_id": lab_id, "file_id": file_id}
        return await self._session.run(lambda connection: bool(connection.execute(_USED, wanted).scalar_one()))

    async def delete(self, lab_id: str, file_id: str) -> None:
        """Forget a file."""
        values = {"this_lab": lab_id, "this_file": file_id}
        await self._session.run(lambda connection: connection.execute(_DELETE, values))

    async def purge(self, before: datetime) -> int:
        """Forget uploads that were never completed."""
        return await self._session.run(lambda connection: connection.execute(_PURGE, {"before": before}).rowcount)
