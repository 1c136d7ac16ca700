"""Episodes and their turns. Every statement names the lab, so another lab's episode cannot be reached."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, Select, and_, bindparam, insert, or_, select, update

from reward_server.errors import TurnInProgress
from reward_server.store.mapping import values_of
from reward_server.store.records import EPISODE_LIFETIME, EpisodeCursor, EpisodeRow, EpisodeStatus, TurnRow
from reward_server.store.session import Session
from reward_server.store.tables import Episode, Turn, table_of

_EPISODE = table_of(Episode)
_TURN = table_of(Turn)

_ADD = insert(_EPISODE)
_GET = select(_EPISODE).where(
    _EPISODE.c.lab_id == bindparam("lab_id"), _EPISODE.c.episode_id == bindparam("episode_id")
)
_TURNS = (
    select(_TURN)
    .join(_EPISODE, _EPISODE.c.episode_id == _TURN.c.episode_id)
    .where(_EPISODE.c.lab_id == bindparam("lab_id"), _TURN.c.episode_id == bindparam("episode_id"))
    .order_by(_TURN.c.turn)
)
_ADD_TURN = insert(_TURN)
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


class Episodes:
    """Episodes of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: EpisodeRow) -> None:
        """Store a new episode."""
        await self._session.execute(_ADD, values_of(row))

    async def get(self, lab_id: str, episode_id: str) -> EpisodeRow | None:
        """The lab's episode, expired or not."""
        result = await self._session.execute(_GET, {"lab_id": lab_id, "episode_id": episode_id})
        found = result.mappings().one_or_none()
        return None if found is None else _episode(found)

    async def turns(self, lab_id: str, episode_id: str) -> list[TurnRow]:
        """The answered turns in order; none if the episode is not the lab's."""
        result = await self._session.execute(_TURNS, {"lab_id": lab_id, "episode_id": episode_id})
        return [TurnRow(**row) for row in result.mappings()]

    async def append_turn(self, episode: EpisodeRow, turn: TurnRow) -> None:
        """Store a turn and the episode as it stands after it.

        `TurnInProgress` if the episode is not where this turn began: somebody else was faster.
        """
        await self._step(episode, turn_before=turn.turn - 1)
        await self._session.execute(_ADD_TURN, values_of(turn))

    async def finish(self, episode: EpisodeRow) -> None:
        """End an episode without a further turn; `TurnInProgress` if it has moved meanwhile."""
        await self._step(episode, turn_before=episode.turn)

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        now: datetime,
        after: EpisodeCursor | None = None,
        collection: str | None = None,
        status: EpisodeStatus | None = None,
    ) -> list[EpisodeRow]:
        """The lab's episodes, newest first, beginning after a cursor."""
        statement = select(_EPISODE).where(_EPISODE.c.lab_id == lab_id)
        if collection is not None:
            statement = statement.where(_EPISODE.c.collection == collection)
        if status is not None:
            statement = statement.where(_has_status(status, now))
        if after is not None:
            statement = statement.where(_is_after(after))
        result = await self._session.execute(_newest_first(statement).limit(limit))
        return [_episode(row) for row in result.mappings()]

    async def _step(self, episode: EpisodeRow, *, turn_before: int) -> None:
        result = await self._session.execute(
            _STEP,
            {
                "this_lab": episode.lab_id,
                "this_episode": episode.episode_id,
                "turn_before": turn_before,
                "turn": episode.turn,
                "persona_state": episode.persona_state,
                "status": episode.status,
                "terminal_reason": episode.terminal_reason,
                "active_at": episode.active_at,
            },
        )
        if result.rowcount != 1:
            raise TurnInProgress


def _episode(row: RowMapping) -> EpisodeRow:
    return EpisodeRow(**{**row, "status": EpisodeStatus(row["status"])})


def _newest_first(statement: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    return statement.order_by(_EPISODE.c.created_at.desc(), _EPISODE.c.episode_id.desc())


def _is_after(cursor: EpisodeCursor) -> ColumnElement[bool]:
    return or_(
        _EPISODE.c.created_at < cursor.created_at,
        and_(_EPISODE.c.created_at == cursor.created_at, _EPISODE.c.episode_id < cursor.episode_id),
    )


def _has_status(status: EpisodeStatus, now: datetime) -> ColumnElement[bool]:
    """The SQL of `EpisodeRow.status_at`."""
    if status is EpisodeStatus.COMPLETE:
        return _EPISODE.c.status == EpisodeStatus.COMPLETE.value
    last_alive = now - EPISODE_LIFETIME
    lively = _EPISODE.c.active_at > last_alive if status is EpisodeStatus.ACTIVE else _EPISODE.c.active_at <= last_alive
    return and_(_EPISODE.c.status == EpisodeStatus.ACTIVE.value, lively)
