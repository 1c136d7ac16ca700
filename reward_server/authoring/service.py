"""What a lab does with scenarios of its own: push, list, pull, delete."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping

from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.authoring.shelf import OwnShelf
from reward_server.clock import Clock, to_iso
from reward_server.errors import CollectionNotFound, Conflict, FieldProblem, InvalidRequest
from reward_server.store.own_collection_records import CheckStatus, OwnCollectionRow
from reward_server.store.store import Store
from scenarios.own import own_name, read_own
from trainer_client.wire import PushRequest

MOST_COLLECTIONS = 20
MOST_VERSIONS = 10
MOST_CHARACTERS = 1_000_000
"""Of the files of a collection."""

Submit = Callable[[Lab, str, int], Awaitable[str]]
"""Queues the check of a version; the id of its job."""


class OwnScenarios:
    """All that labs can do with their own scenarios, but for having them checked, which is a job."""

    def __init__(self, store: Store, clock: Clock, shelf: OwnShelf, submit: Submit) -> None:
        self._store = store
        self._clock = clock
        self._shelf = shelf
        self._submit = submit

    async def push(self, lab: Lab, request: PushRequest) -> Body:
        """Keep a new version and have it checked; the newest one is answered again if nothing has changed.

        Raises:
            InvalidRequest: a file is not sound; says which, and what to do.
            Conflict: the lab has as many collections as it may have.
        """
        digest = _digest(request.files)
        findings = await self.findings(lab, request)
        if findings:
            raise InvalidRequest(errors=[FieldProblem(("files",), each) for each in findings])
        row, fresh = await self._keep(lab, request, digest)
        job = await self._submit(lab, row.slug, row.version) if fresh else None
        return document(row) | ({} if job is None else {"job_id": job})

    async def findings(self, lab: Lab, request: PushRequest) -> list[str]:
        """What a push of these files would be refused for; nothing is kept."""
        if sum(map(len, request.files.values())) > MOST_CHARACTERS:
            return [f"More than {MOST_CHARACTERS:,} characters in all."]
        digest = _digest(request.files)
        brought, findings = await asyncio.to_thread(read_own, request.collection, lab.lab_id, request.files, digest)
        problem = None if brought is None else self._shelf.problem(brought)
        return [f"A scenario {problem}"] if problem else findings

    async def versions(self, lab: Lab, collection: str) -> list[OwnCollectionRow]:
        """The versions of a collection that are kept, the newest first."""
        async with self._store.reading() as unit:
            return await unit.own_collections.of(lab.lab_id, collection.removesuffix(f"@{lab.lab_id}"))

    async def all(self, lab: Lab) -> list[OwnCollectionRow]:
        """The newest version of each collection."""
        async with self._store.reading() as unit:
            rows = await unit.own_collections.of(lab.lab_id)
        return list({row.slug: row for row in reversed(rows)}.values())

    async def pull(self, lab: Lab, collection: str, version: int | None) -> Body:
        """The files of a version, the newest unless one is named, and what its check found."""
        slug = collection.removesuffix(f"@{lab.lab_id}")
        async with self._store.reading() as unit:
            rows = await unit.own_collections.of(lab.lab_id, slug)
        found = next((row for row in rows if version in (None, row.version)), None)
        if found is None:
            raise CollectionNotFound
        if found.status is CheckStatus.PASSED:
            # Who is told that it has passed can use it, whatever word is still on its way.
            await self._shelf.refresh()
        return document(found) | {"files": found.files, "findings": found.findings}

    async def delete(self, lab: Lab, collection: str) -> Body:
        """Forget all versions of a collection; what was scored by it stays."""
        found = await self.pull(lab, collection, None)
        slug = found["collection"].partition("@")[0]
        async with self._store.transaction() as unit:
            if not await unit.own_collections.delete(lab.lab_id, slug):
                raise CollectionNotFound
        await self._shelf.refresh()
        return {name: value for name, value in found.items() if name not in ("files", "findings")}

    async def _keep(self, lab: Lab, request: PushRequest, digest: str) -> tuple[OwnCollectionRow, bool]:
        async with self._store.transaction() as unit:
            rows = await unit.own_collections.of(lab.lab_id)
            own = [row for row in rows if row.slug == request.collection]
            if own and own[0].digest == digest and own[0].status is not CheckStatus.FAILED:
                return own[0], False
            if not own and len({row.slug for row in rows}) >= MOST_COLLECTIONS:
                raise Conflict(f"This lab has {MOST_COLLECTIONS} collections of its own; delete one first.")
            row = OwnCollectionRow(
                lab_id=lab.lab_id,
                slug=request.collection,
                version=own[0].version + 1 if own else 1,
                status=CheckStatus.CHECKING,
                digest=digest,
                files=dict(request.files),
                findings=[],
                created_at=self._clock.now(),
            )
            await unit.own_collections.add(row)
            in_use = next((each.version for each in own if each.status is CheckStatus.PASSED), row.version)
            oldest = min(in_use, row.version - MOST_VERSIONS + 1)
            await unit.own_collections.delete(lab.lab_id, row.slug, below=oldest)
        return row, True


def document(row: OwnCollectionRow) -> Body:
    """A version without its files."""
    return {
        "collection": own_name(row.slug, row.lab_id),
        "version": row.version,
        "status": row.status.value,
        "digest": row.digest,
        "created_at": to_iso(row.created_at),
    }


def _digest(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
