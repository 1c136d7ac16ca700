"""Pages of rows with a moment and an id, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, or_, select

from reward_server.store.records import PageEnd


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
    """Whether a row comes on a later page."""
    return or_(created < end.created_at, and_(created == end.created_at, own < end.id))
