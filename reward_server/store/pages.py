"""Pages of rows with a moment and an id: one page with the newest first, or all of them with the oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Table, and_, null, or_, select

from reward_server.store.dialects import json_texts
from reward_server.store.isolation import across_labs
from reward_server.store.records import PageEnd
from reward_server.store.session import Session

STATEMENT_ROWS = 1000
"""So many rows are read by one statement, since a statement has a few seconds on PostgreSQL."""


def newest(
    table: Table,
    id_column: str,
    limit: int,
    *,
    after: PageEnd | None = None,
    collections: Sequence[str] | None = None,
    until: datetime | None = None,
) -> Select[Any]:
    """A page of a table with `created_at` and `collection`; the caller names the lab."""
    created, own = table.c.created_at, table.c[id_column]
    rows = select(table).order_by(created.desc(), own.desc()).limit(limit)
    if collections is not None:
        rows = rows.where(table.c.collection.in_(collections))
    if until is not None:
        rows = rows.where(created <= until)
    return rows if after is None else rows.where(is_after(created, own, after))


def is_after(created: ColumnElement[Any], own: ColumnElement[Any], end: PageEnd) -> ColumnElement[bool]:
    """The condition that a row comes on a later page."""
    return or_(created < end.created_at, and_(created == end.created_at, own < end.id))


def made_with(collections: ColumnElement[Any], allowed: Sequence[str]) -> ColumnElement[bool]:
    """The condition that a column of JSON lists names no collections but these. NULL stands for all there are."""
    named = json_texts(collections).table_valued("value").c.value
    return and_(collections.is_not(null()), ~select(named).where(named.not_in(allowed)).exists())


async def everything(session: Session, table: Table, id_column: str, lab_id: str | None) -> list[RowMapping]:
    """All rows of a lab, or of all labs, the oldest first; read piece by piece."""
    created, own = table.c.created_at, table.c[id_column]
    rows = select(table).order_by(created, own).limit(STATEMENT_ROWS)
    rows = across_labs(rows) if lab_id is None else rows.where(table.c.lab_id == lab_id)
    piece = await _read(session, rows)
    rows_of_page = list(piece)
    while len(piece) == STATEMENT_ROWS:
        last = piece[-1]
        later = or_(created > last["created_at"], and_(created == last["created_at"], own > last[id_column]))
        piece = await _read(session, rows.where(later))
        rows_of_page += piece
    return rows_of_page


async def _read(session: Session, rows: Select[Any]) -> list[RowMapping]:
    return await session.run(lambda connection: list(connection.execute(rows).mappings()))
