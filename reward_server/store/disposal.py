"""Conversations that are deleted: those of a lab that wants them gone, and those older than it lets them be kept.

Every table of a lab's rows is either deleted from here or kept by name, so that a new table cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import JSON, Connection, Delete, LargeBinary, Table, Text, cast, delete, func, select
from sqlalchemy.sql import ColumnElement

from reward_server.store.isolation import LAB
from reward_server.store.job_records import OPEN
from reward_server.store.session import Session
from reward_server.store.tables import metadata
from reward_server.store.training_records import OPEN_RUNS

KEPT = frozenset(
    ("lab", "api_key", "audit_event", "usage_day", "llm_spending", "llm_bookings", "webhook", "agent", "own_collection")
)
"""Of labs, but no conversations: who they are, what they used and did, where their agents are, what they score by."""


ENDING: Mapping[str, Sequence[str]] = {"job": OPEN, "training_run": OPEN_RUNS}
"""Tables of work that ends, and what its status is before."""


def of_conversations() -> list[Table]:
    """Tables whose rows are deleted; children before their parents."""
    return [table for table in reversed(metadata.sorted_tables) if LAB in table.c and table.name not in KEPT]


class Disposal:
    """Deletes and measures what one lab has stored."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def delete(self, lab_id: str, *, before: datetime | None = None) -> dict[str, int]:
        """Delete a lab's conversations, all or those made before a moment; how many rows of each table."""

        def work(connection: Connection) -> dict[str, int]:
            deleted = {
                table.name: connection.execute(_delete(table, lab_id, before)).rowcount for table in _due(before)
            }
            return {name: count for name, count in deleted.items() if count}

        return await self._session.run(work)

    async def stored_bytes(self, lab_id: str) -> int:
        """About how much a lab has stored: the characters of its texts and JSON values."""

        def work(connection: Connection) -> int:
            return sum(
                int(connection.execute(_size(table, lab_id)).scalar_one() or 0) for table in of_conversations()
            ) + int(connection.execute(_turns_size(lab_id)).scalar_one() or 0)

        return await self._session.run(work)


def _due(before: datetime | None) -> list[Table]:
    tables = of_conversations()
    return tables if before is None else [table for table in tables if "created_at" in table.c]


def _delete(table: Table, lab_id: str, before: datetime | None) -> Delete:
    statement = delete(table).where(table.c[LAB] == lab_id)
    return statement if before is None else statement.where(_age(table) < before, *_free(table, lab_id))


def _age(table: Table) -> ColumnElement[datetime]:
    """The moment when a row was last of use: an episode is as old as its last turn, a job or a run as its end."""
    if table.name in ENDING:
        return func.coalesce(table.c.finished_at, table.c.created_at)
    return table.c["active_at" if "active_at" in table.c else "created_at"]


def _free(table: Table, lab_id: str) -> list[ColumnElement[bool]]:
    """A job or a run that is not over stays, and so does the file that it reads: all go once it is."""
    job = metadata.tables["job"]
    if table.name in ENDING:
        return [table.c.status.not_in(ENDING[table.name])]
    if table.name == "file":
        return [table.c.file_id.not_in(select(job.c.file_id).where(job.c[LAB] == lab_id, job.c.status.in_(OPEN)))]
    return []


def _length(table: Table) -> ColumnElement[int]:
    texts = [column for column in table.c if isinstance(column.type, JSON | Text)]
    lengths = [func.coalesce(func.sum(func.length(cast(column, Text))), 0) for column in texts]
    files = [column for column in table.c if isinstance(column.type, LargeBinary)]
    lengths += [func.coalesce(func.sum(func.length(column)), 0) for column in files]
    return reduce(add, lengths, func.count())


def _size(table: Table, lab_id: str) -> Any:
    return select(_length(table)).select_from(table).where(table.c[LAB] == lab_id)


def _turns_size(lab_id: str) -> Any:
    turn, episode = metadata.tables["turn"], metadata.tables["episode"]
    return select(_length(turn)).select_from(turn.join(episode)).where(episode.c[LAB] == lab_id)
