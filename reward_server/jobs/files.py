"""Uploads of JSONL: read as they come, cut into chunks of whole lines, stored chunk by chunk within bounds."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace

from reward_server.access import require_all_of
from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.clock import Clock, to_iso
from reward_server.errors import BodyTooLarge, Conflict, FileNotFound, InvalidRequest, StorageExhausted
from reward_server.ids import IdPrefix, is_id, new_id
from reward_server.store.job_records import Chunk, FileRow
from reward_server.store.records import PageEnd
from reward_server.store.store import Store

CHUNK_LINES = 64
CHUNK_BYTES = 1_000_000
MAX_LINE_BYTES = 4_000_000
MAX_LINES = 100_000
MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True)
class FileLimits:
    """The limits on files of a lab."""

    file_bytes: int = 256_000_000
    lab_bytes: int = 2_000_000_000
    lines: int = MAX_LINES


@dataclass
class _Cutter:
    """Makes chunks of whole lines out of bytes as they come."""

    limits: FileLimits
    room_bytes: int
    """What the lab may still store."""
    lines: int = 0
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    _read: int = 0
    """Lines, the empty ones included, as an editor counts them."""
    _rest: bytes = b""
    _pending: list[bytes] = field(default_factory=list)
    _pending_bytes: int = 0

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks that are complete now."""
        self.size += len(data)
        if self.size > self.limits.file_bytes:
            raise BodyTooLarge(f"A file may have {self.limits.file_bytes // 1_000_000} MB.")
        if self.size > self.room_bytes:
            raise StorageExhausted("The files of this lab take all the room it has; delete some: DELETE /files/{id}.")
        self.digest.update(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        chunks = [chunk for line in whole for chunk in self._add(line)]
        # The end of a line that is too long is not waited for.
        self._require_short(self._rest)
        return chunks

    def end(self) -> list[Chunk]:
        """Return the rest."""
        rows_added = self._add(self._rest)
        if self.lines == 0:
            raise InvalidRequest("The file has no lines.")
        return [*rows_added, *self._cut()]

    def _require_short(self, line: bytes) -> None:
        """Of the line that comes next, or of its beginning."""
        if len(line) > MAX_LINE_BYTES:
            raise InvalidRequest(f"Line {self._read + 1:,} is too long: a line may have {MAX_LINE_BYTES:,} bytes.")

    def _add(self, line: bytes) -> list[Chunk]:
        line = line.strip()
        self._require_short(line)
        self._read += 1
        if not line:
            return []
        self.lines += 1
        if self.lines > self.limits.lines:
            raise InvalidRequest(f"A file may have {self.limits.lines:,} lines.")
        self._pending.append(line)
        self._pending_bytes += len(line)
        return self._cut() if len(self._pending) >= CHUNK_LINES or self._pending_bytes >= CHUNK_BYTES else []

    def _cut(self) -> list[Chunk]:
        if not self._pending:
            return []
        chunk = Chunk(self.lines - len(self._pending), len(self._pending), b"\n".join(self._pending))
        self._pending, self._pending_bytes = [], 0
        return [chunk]


class FileService:
    """The files of labs."""

    def __init__(self, store: Store, clock: Clock, limits: FileLimits = FileLimits()) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    async def upload(self, lab: Lab, name: str, data: AsyncIterator[bytes]) -> Body:
        """Store what comes; nothing of it is there if it cannot be stored whole."""
        return document(await self.store(lab, name, data))

    async def store(self, lab: Lab, name: str, data: AsyncIterator[bytes]) -> FileRow:
        """The same, for what is submitted with a job."""
        row = FileRow(
            file_id=new_id(IdPrefix.FILE),
            lab_id=lab.lab_id,
            name=_checked(name),
            size_bytes=0,
            lines=0,
            digest="",
            is_complete=False,
            created_at=self._clock.now(),
            collections=lab.collections,
        )
        async with self._store.transaction() as unit:
            taken = await unit.files.stored_bytes(lab.lab_id)
            await unit.files.add(row)
        cutter = _Cutter(self._limits, self._limits.lab_bytes - taken)
        try:
            async for part in data:
                await self._store_chunks(row, cutter.feed(part))
            await self._store_chunks(row, cutter.end())
        except BaseException:
            await self._forget(row)
            raise
        row = replace(
            row, size_bytes=cutter.size, lines=cutter.lines, digest=cutter.digest.hexdigest(), is_complete=True
        )
        async with self._store.transaction() as unit:
            await unit.files.finish(row)
        return row

    async def get(self, lab: Lab, file_id: str) -> Body:
        """Return the metadata of a file."""
        return document(await self.find(lab, file_id))

    async def find(self, lab: Lab, file_id: str) -> FileRow:
        """The lab's file.

        Raises:
            FileNotFound: the lab has none of that id.
            Forbidden: the key that uploaded it may use collections that this one may not.
        """
        row = None
        if is_id(file_id, IdPrefix.FILE):
            async with self._store.reading() as unit:
                row = await unit.files.get(lab.lab_id, file_id)
        if row is None:
            raise FileNotFound
        require_all_of(lab, row.collections, "file")
        return row

    async def page(self, lab: Lab, limit: int, after: PageEnd | None) -> list[FileRow]:
        """The lab's files that `find` finds, newest first."""
        async with self._store.reading() as unit:
            return await unit.files.page(lab.lab_id, limit, after, collections=lab.collections)

    async def delete(self, lab: Lab, file_id: str) -> Body:
        """Forget a file; results of jobs that read it stay."""
        row = await self.find(lab, file_id)
        async with self._store.transaction() as unit:
            if await unit.files.is_in_use(lab.lab_id, file_id):
                raise Conflict("A job reads this file: wait for it, or cancel it first.")
            await unit.files.delete(lab.lab_id, file_id)
        return {**document(row), "deleted": True}

    async def _store_chunks(self, row: FileRow, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            async with self._store.transaction() as unit:
                await unit.files.add_chunk(row.lab_id, row.file_id, chunk)

    async def _forget(self, row: FileRow) -> None:
        async with self._store.transaction() as unit:
            await unit.files.delete(row.lab_id, row.file_id)


def document(row: FileRow) -> Body:
    """A file as it is shown."""
    return {
        "file_id": row.file_id,
        "name": row.name,
        "size_bytes": row.size_bytes,
        "lines": row.lines,
        "sha256": row.digest,
        "created_at": to_iso(row.created_at),
    }


def _checked(name: str) -> str:
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidRequest(f"The name of a file has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    return name
