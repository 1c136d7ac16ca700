"""Episodes and their turns. Every statement names the lab, so another lab's episode cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, bindparam, insert, select

from reward_server.errors import TurnInProgress
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after
from reward_server.store.records import (
    EPISODE_LIFETIME,
    EpisodeRow,
    EpisodeStatus,
    FinishedEpisode,
    PageEnd,
    TurnRow,
)
from reward_server.store.session import Session
from reward_server.store.steps import step_all
from reward_server.store.tables import EpisodeTable, TurnTable, table_of

_EPISODE = table_of(EpisodeTable)
_TURN = table_of(TurnTable)

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
_TURNS_OF_MANY = (
    select(_TURN)
    .join(_EPISODE, _EPISODE.c.episode_id == _TURN.c.episode_id)
    .where(_EPISODE.c.lab_id == bindparam("lab_id"), _TURN.c.episode_id.in_(bindparam("episode_ids", expanding=True)))
    .order_by(_TURN.c.episode_id, _TURN.c.turn)
)
_OF_A_GROUP = ("collection", "scenario", "seed", "persona_slug", "created_at", "episode_id")
_ADD_TURN = insert(_TURN)


class EpisodeRepository:
    """Episodes of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, *rows: EpisodeRow) -> None:
        """Store new episodes."""
        await self._session.run(lambda connection: connection.execute(_ADD, [values_of(row) for row in rows]))

    async def get(self, lab_id: str, episode_id: str) -> EpisodeRow | None:
        """The lab's episode, expired or not."""

        def work(connection: Connection) -> EpisodeRow | None:
            wanted = {"lab_id": lab_id, "episode_id": episode_id}
            row = connection.execute(_GET, wanted).mappings().one_or_none()
            return None if row is None else _episode(row)

        return await self._session.run(work)

    async def turns(self, lab_id: str, episode_id: str) -> list[TurnRow]:
        """The answered turns in order; none if the episode is not the lab's."""
        wanted = {"lab_id": lab_id, "episode_id": episode_id}
        return await self._session.run(
            lambda connection: [TurnRow(**row) for row in connection.execute(_TURNS, wanted).mappings()]
        )

    async def turns_of(self, lab_id: str, episode_ids: Sequence[str]) -> dict[str, list[TurnRow]]:
        """The answered turns of several of the lab's episodes, each in order."""
        wanted = {"lab_id": lab_id, "episode_ids": list(episode_ids)}

        def work(connection: Connection) -> dict[str, list[TurnRow]]:
            turns_by_episode: dict[str, list[TurnRow]] = {episode_id: [] for episode_id in episode_ids}
            for row in connection.execute(_TURNS_OF_MANY, wanted).mappings():
                turns_by_episode[row["episode_id"]].append(TurnRow(**row))
            return turns_by_episode

        return await self._session.run(work)

    async def named(self, lab_id: str, episode_ids: Sequence[str]) -> dict[str, EpisodeRow]:
        """Those of these episodes that are the lab's."""
        rows = select(_EPISODE).where(_EPISODE.c.lab_id == lab_id, _EPISODE.c.episode_id.in_(list(episode_ids)))
        return await self._session.run(
            lambda connection: {row["episode_id"]: _episode(row) for row in connection.execute(rows).mappings()}
        )

    async def finished(
        self, lab_id: str, *, until: datetime, collections: Sequence[str] | None = None
    ) -> list[FinishedEpisode]:
        """The lab's complete episodes that ended no later than `until` and whose last turn was scored; groups together.

        A group is what shares collection, scenario, seed and persona.
        """
        wanted = [_EPISODE.c[name] for name in _OF_A_GROUP] + [_EPISODE.c.reward_config, _TURN.c.reward, _TURN.c.scores]
        rows = (
            select(*wanted)
            .join(_TURN, and_(_TURN.c.episode_id == _EPISODE.c.episode_id, _TURN.c.turn == _EPISODE.c.turn))
            .where(
                _EPISODE.c.lab_id == lab_id,
                _EPISODE.c.status == EpisodeStatus.COMPLETE.value,
                _EPISODE.c.active_at <= until,
            )
            .order_by(*(_EPISODE.c[name] for name in _OF_A_GROUP))
        )
        if collections is not None:
            rows = rows.where(_EPISODE.c.collection.in_(collections))

        def work(connection: Connection) -> list[FinishedEpisode]:
            rows_found = (dict(row) for row in connection.execute(rows).mappings())
            return [FinishedEpisode(**row) for row in rows_found if row.pop("scores") is not None]

        return await self._session.run(work)

    async def append_turn(self, episode: EpisodeRow, turn: TurnRow) -> None:
        """Store a turn and the episode as it stands after it.

        `TurnInProgress` if the episode is not where this turn began: somebody else was faster.
        """
        if not await self.append_turns([(episode, turn)]):
            raise TurnInProgress

    async def append_turns(self, played: Sequence[tuple[EpisodeRow, TurnRow]]) -> set[str]:
        """Store a turn of each of several episodes, and the episodes as they stand after it; the ids of these episodes.

        One that is not where its turn began is left as it is, and its id is missing: somebody else was faster.
        """

        def work(connection: Connection) -> set[str]:
            moved = step_all(connection, [(episode, turn.turn - 1) for episode, turn in played])
            rows = [values_of(turn) for _, turn in played if turn.episode_id in moved]
            if rows:
                connection.execute(_ADD_TURN, rows)
            return moved

        return await self._session.run(work)

    async def finish(self, episode: EpisodeRow) -> None:
        """End an episode without a further turn; `TurnInProgress` if it has moved meanwhile."""
        if not await self._session.run(lambda connection: step_all(connection, [(episode, episode.turn)])):
            raise TurnInProgress

    async def ids(
        self, lab_id: str, most: int, *, collections: Sequence[str] | None = None, scenario: str | None = None
    ) -> list[str]:
        """Ids of the lab's episodes in these collections (None: in all) that have scored turns, the oldest first."""
        scored = _EPISODE.c.turn > 0, _EPISODE.c.score_turns.is_(True)
        rows = select(_EPISODE.c.episode_id).where(_EPISODE.c.lab_id == lab_id, *scored)
        if collections is not None:
            rows = rows.where(_EPISODE.c.collection.in_(collections))
        if scenario is not None:
            rows = rows.where(_EPISODE.c.scenario == scenario)
        rows = rows.order_by(_EPISODE.c.created_at, _EPISODE.c.episode_id).limit(most)
        return await self._session.run(lambda connection: list(connection.execute(rows).scalars()))

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        now: datetime,
        after: PageEnd | None = None,
        collections: Sequence[str] | None = None,
        scenario: str | None = None,
        status: EpisodeStatus | None = None,
    ) -> list[EpisodeRow]:
        """The lab's episodes in these collections (None: in all), newest first, beginning after a cursor."""
        statement = select(_EPISODE).where(_EPISODE.c.lab_id == lab_id)
        if collections is not None:
            statement = statement.where(_EPISODE.c.collection.in_(collections))
        if scenario is not None:
            statement = statement.where(_EPISODE.c.scenario == scenario)
        if status is not None:
            statement = statement.where(_has_status(status, now))
        if after is not None:
            statement = statement.where(is_after(_EPISODE.c.created_at, _EPISODE.c.episode_id, after))
        newest = statement.order_by(_EPISODE.c.created_at.desc(), _EPISODE.c.episode_id.desc()).limit(limit)
        return await self._session.run(
            lambda connection: [_episode(row) for row in connection.execute(newest).mappings()]
        )


def _episode(row: RowMapping) -> EpisodeRow:
    return EpisodeRow(**{**row, "status": EpisodeStatus(row["status"])})


def _has_status(status: EpisodeStatus, now: datetime) -> ColumnElement[bool]:
    """The SQL of `EpisodeRow.status_at`."""
    if status is EpisodeStatus.COMPLETE:
        return _EPISODE.c.status == EpisodeStatus.COMPLETE.value
    last_alive = now - EPISODE_LIFETIME
    lively = _EPISODE.c.active_at > last_alive if status is EpisodeStatus.ACTIVE else _EPISODE.c.active_at <= last_alive
    return and_(_EPISODE.c.status == EpisodeStatus.ACTIVE.value, lively)
