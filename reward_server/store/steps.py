"""Moves episodes on: each only from where it was when its turn began, so two turns never take one place.

On PostgreSQL all of them move in one statement, because every statement is a journey to the server. On SQLite one
statement runs over all of them and says how many moved; where some did not, they move one by one, to see which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Integer, String, Text, bindparam, cast, func, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from reward_server.store.columns import JSON_COLUMN, UtcDateTime, dump_json
from reward_server.store.isolation import across_labs
from reward_server.store.records import EpisodeRow, EpisodeStatus
from reward_server.store.tables import EpisodeTable, table_of

_EPISODE = table_of(EpisodeTable)
_STEP = (
    update(_EPISODE)
    .where(
        _EPISODE.c.lab_id == bindparam("this_lab"),
        _EPISODE.c.episode_id == bindparam("this_episode"),
        _EPISODE.c.turn == bindparam("turn_before"),
        _EPISODE.c.status == EpisodeStatus.ACTIVE.value,
    )
    .values({name: bindparam(name) for name in ("turn", "persona_state", "status", "terminal_reason", "active_at")})
)

_ARRAYS: dict[str, TypeEngine[Any]] = {
    "lab_id": String(),
    "episode_id": String(),
    "turn_before": Integer(),
    "turn": Integer(),
    "persona_state": Text(),
    "status": String(),
    "terminal_reason": String(),
    "active_at": UtcDateTime(),
}
_GIVEN = (
    func.unnest(*(bindparam(f"all_{name}", type_=ARRAY(kind)) for name, kind in _ARRAYS.items()))
    .table_valued(*_ARRAYS, name="given")
    .render_derived()
)
# Rows of many labs, each compared with the lab that it was given for.
_STEP_ALL = across_labs(
    update(_EPISODE)
    .where(
        _EPISODE.c.lab_id == _GIVEN.c.lab_id,
        _EPISODE.c.episode_id == _GIVEN.c.episode_id,
        _EPISODE.c.turn == _GIVEN.c.turn_before,
        _EPISODE.c.status == EpisodeStatus.ACTIVE.value,
    )
    .values(
        turn=_GIVEN.c.turn,
        persona_state=cast(_GIVEN.c.persona_state, JSON_COLUMN),
        status=_GIVEN.c.status,
        terminal_reason=_GIVEN.c.terminal_reason,
        active_at=_GIVEN.c.active_at,
    )
    .returning(_EPISODE.c.episode_id)
)


def step_all(connection: Connection, steps: Sequence[tuple[EpisodeRow, int]]) -> set[str]:
    """Move episodes on, each from the turn given with it; the ids of those that were there and active.

    Each episode once. There may be none: of a batch of turns, every item can be an error.
    """
    if not steps:
        return set()
    if connection.dialect.name == "sqlite":
        return _step_all_sqlite(connection, steps)
    given = [
        (
            after.lab_id,
            after.episode_id,
            before,
            after.turn,
            dump_json(after.persona_state),
            after.status.value,
            after.terminal_reason,
            after.active_at,
        )
        for after, before in steps
    ]
    columns = zip(*given, strict=True)
    values = {f"all_{name}": list(column) for name, column in zip(_ARRAYS, columns, strict=True)}
    return set(connection.execute(_STEP_ALL, values).scalars())


def _step_all_sqlite(connection: Connection, steps: Sequence[tuple[EpisodeRow, int]]) -> set[str]:
    rows = [_values(after, before) for after, before in steps]
    if len(rows) > 1:
        # Not released: COMMIT ends it, as it does those of the writer.
        connection.exec_driver_sql("SAVEPOINT steps")
        if connection.execute(_STEP, rows).rowcount == len(rows):
            return {row["this_episode"] for row in rows}
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT steps")
    return {row["this_episode"] for row in rows if connection.execute(_STEP, row).rowcount == 1}


def _values(after: EpisodeRow, before: int) -> dict[str, Any]:
    return {
        "this_lab": after.lab_id,
        "this_episode": after.episode_id,
        "turn_before": before,
        "turn": after.turn,
        "persona_state": after.persona_state,
        "status": after.status,
        "terminal_reason": after.terminal_reason,
        "active_at": after.active_at,
    }
