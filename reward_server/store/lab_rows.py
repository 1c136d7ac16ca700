"""Rows that a lab adds and pages through: each has a moment, an id and a collection, and is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from sqlalchemy import Table, insert

from reward_server.store.mapping import values_of
from reward_server.store.pages import newest
from reward_server.store.records import PageEnd
from reward_server.store.session import Session

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


class LabRows(Generic[Row]):
    """Such rows, of one lab at a time; a repository names its table and its record."""

    _table: ClassVar[Table]
    _id_column: ClassVar[str]
    _record: type[Row]

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: Row) -> None:
        """Store a row."""
        adding = insert(self._table)
        await self._session.run(lambda connection: connection.execute(adding, values_of(row)))

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        after: PageEnd | None = None,
        collections: Sequence[str] | None = None,
        until: datetime | None = None,
        having: Mapping[str, str | None] | None = None,
    ) -> list[Row]:
        """The lab's rows in these collections (None: in all) that have these values (None: any), the newest first."""
        table = self._table
        rows = newest(table, self._id_column, limit, after=after, collections=collections, until=until)
        conditions = [table.c[name] == value for name, value in (having or {}).items() if value is not None]
        rows = rows.where(table.c.lab_id == lab_id, *conditions)
        return await self._session.run(
            lambda connection: [self._record(**mapping) for mapping in connection.execute(rows).mappings()]
        )
