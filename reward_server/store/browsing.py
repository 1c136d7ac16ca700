"""Episodes and evaluations as people look for them: filtered, sorted, a page at a time, with what each came to.

Beside `Episodes` and `Evaluations`, which serve the API: what is asked here joins turns and looks into texts, so it may
take as long as a person waits. Every statement names the lab.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, ColumnElement, RowMapping, Select, Text, and_, cast, func, or_, select

from reward_server.store.dialects import json_texts
from reward_server.store.pages import is_after
from reward_server.store.records import EPISODE_LIFETIME, EpisodeStatus, FinishedEpisode, JsonObject, PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import AgentEpisodeTable, EpisodeTable, EvaluationTable, TurnTable, table_of

_EPISODE = table_of(EpisodeTable)
_TURN = table_of(TurnTable)
_PLAYED = table_of(AgentEpisodeTable)
_EVALUATION = table_of(EvaluationTable)
_OF_A_GROUP = ("collection", "scenario", "seed", "persona_slug", "created_at", "episode_id")
_OTHER = _EPISODE.alias("other")
_LISTED = ("episode_id", "collection", "scenario", "turn", "max_turns", "status", "terminal_reason")
_SHOWN = (
    *(_EPISODE.c[name] for name in (*_LISTED, "created_at", "active_at")),
    _TURN.c.reward,
    _TURN.c.scores,
    _TURN.c.answer["capped_by"].label("capped_by"),
    _TURN.c.answer["scoring_version"].as_string().label("scoring_version"),
)
"""Of an episode and its last turn: not the texts and states, which are most of both."""


LOOKED_THROUGH = 5_000
"""Rows, of the newest, that are searched or sorted by what no index knows: dates reach further back."""


class Order(StrEnum):
    """The order of a list."""

    NEWEST = "newest"
    HIGHEST = "highest"
    LOWEST = "lowest"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowseFilter:
    """The conditions of a search; None is anything."""

    collections: Sequence[str] | None = None
    scenario: str | None = None
    agent_id: str | None = None
    status: EpisodeStatus | None = None
    since: datetime | None = None
    until: datetime | None = None
    least: float | None = None
    most: float | None = None
    capped_by: str | None = None
    text: str | None = field(default=None, repr=False)
    source: str | None = None
    """Of evaluations: the door they came through."""
    order: Order = Order.NEWEST

    @property
    def looks_through(self) -> bool:
        """True if rows have to be looked into one by one."""
        into = (self.least, self.most, self.capped_by, self.text)
        return self.order is not Order.NEWEST or any(part is not None for part in into)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowsedRow:
    """An episode or an evaluation in a list."""

    id: str
    collection: str
    scenario: str
    reward: float | None
    scores: Mapping[str, float] = field(default_factory=dict)
    capped_by: Sequence[str] = ()
    scoring_version: str | None
    turns: int | None = None
    max_turns: int | None = None
    status: EpisodeStatus | None = None
    terminal_reason: str | None = None
    source: str | None = None
    created_at: datetime
    first: str = field(default="", repr=False)
    """What the agent said first; of an evaluation, the first message."""


class Browsing:
    """Looks through what one lab has."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def episodes(
        self,
        lab_id: str,
        wanted: BrowseFilter,
        limit: int,
        *,
        now: datetime,
        after: PageEnd | None = None,
        skip: int = 0,
    ) -> list[BrowsedRow]:
        """A page of the lab's episodes; `after` continues the newest first, `skip` any other order."""
        outcomes = await self.outcomes(lab_id, wanted, limit, now=now, after=after, skip=skip)
        firsts = await self._first_words(lab_id, [outcome.id for outcome in outcomes])
        return [replace(outcome, first=firsts.get(outcome.id, "")) for outcome in outcomes]

    async def outcomes(
        self,
        lab_id: str,
        wanted: BrowseFilter,
        limit: int,
        *,
        now: datetime,
        after: PageEnd | None = None,
        skip: int = 0,
    ) -> list[BrowsedRow]:
        """The same without a word of what was said."""
        key = _EPISODE.c.created_at, _EPISODE.c.episode_id
        since = await self._since(lab_id, wanted, _own_conditions(lab_id, wanted, now), after, key)
        rows = (
            select(*_SHOWN)
            .select_from(_EPISODE)
            .outerjoin(_TURN, and_(_TURN.c.episode_id == _EPISODE.c.episode_id, _TURN.c.turn == _EPISODE.c.turn))
            .where(_EPISODE.c.lab_id == lab_id, *_episode_conditions(lab_id, wanted, now, since))
        )
        order = {
            Order.HIGHEST: _TURN.c.reward.desc().nulls_last(),
            Order.LOWEST: _TURN.c.reward.asc().nulls_last(),
            Order.LONGEST: _EPISODE.c.turn.desc(),
        }
        rows_found = await self._page(
            _sorted(rows, wanted.order, order, *key),
            limit,
            after,
            skip,
            key,
        )
        return [_episode(row, now) for row in rows_found]

    async def evaluations(
        self, lab_id: str, wanted: BrowseFilter, limit: int, *, after: PageEnd | None = None, skip: int = 0
    ) -> list[BrowsedRow]:
        """The same of its evaluations."""
        table = _EVALUATION
        key = table.c.created_at, table.c.evaluation_id
        since = await self._since(lab_id, wanted, _common(table, wanted), after, key)
        rows = select(table).where(table.c.lab_id == lab_id, *_evaluation_conditions(wanted, since))
        order = {Order.HIGHEST: table.c.reward.desc(), Order.LOWEST: table.c.reward.asc()}
        return [
            _evaluation(row)
            for row in await self._page(_sorted(rows, wanted.order, order, *key), limit, after, skip, key)
        ]

    async def newest_finished(
        self, lab_id: str, most: int, *, collections: Sequence[str] | None = None
    ) -> list[FinishedEpisode]:
        """The lab's newest complete episodes whose last turn was scored; what shares scenario, seed and persona stands
        together."""
        rows = (
            select(*(_EPISODE.c[name] for name in _OF_A_GROUP), _EPISODE.c.reward_config, _TURN.c.reward)
            .join(_TURN, and_(_TURN.c.episode_id == _EPISODE.c.episode_id, _TURN.c.turn == _EPISODE.c.turn))
            .where(
                _EPISODE.c.lab_id == lab_id,
                _EPISODE.c.status == EpisodeStatus.COMPLETE.value,
                _EPISODE.c.score_turns.is_(True),
            )
            .order_by(_EPISODE.c.created_at.desc(), _EPISODE.c.episode_id.desc())
            .limit(most)
        )
        if collections is not None:
            rows = rows.where(_EPISODE.c.collection.in_(collections))
        newest = await self._session.run(
            lambda connection: [FinishedEpisode(**row) for row in connection.execute(rows).mappings()]
        )
        return sorted(newest, key=lambda episode: [str(getattr(episode, name)) for name in _OF_A_GROUP])

    async def lengths(self, lab_id: str, episode_ids: Sequence[str]) -> dict[str, int]:
        """The number of characters the agent wrote in each of these episodes of the lab."""
        rows = (
            select(_TURN.c.episode_id, func.sum(func.length(_TURN.c.agent_content)))
            .join(_EPISODE, _EPISODE.c.episode_id == _TURN.c.episode_id)
            .where(_EPISODE.c.lab_id == lab_id, _TURN.c.episode_id.in_(list(episode_ids)))
            .group_by(_TURN.c.episode_id)
        )
        return await self._session.run(
            lambda connection: {item_id: int(characters or 0) for item_id, characters in connection.execute(rows)}
        )

    async def neighbours(self, lab_id: str, collections: Sequence[str] | None, here: PageEnd) -> tuple[str | None, ...]:
        """The lab's next newer and next older episode, where there are such."""
        created, own = _EPISODE.c.created_at, _EPISODE.c.episode_id
        newer = or_(created > here.created_at, and_(created == here.created_at, own > here.id))
        of_lab = select(own).where(_EPISODE.c.lab_id == lab_id)
        if collections is not None:
            of_lab = of_lab.where(_EPISODE.c.collection.in_(collections))
        before = of_lab.where(newer).order_by(created.asc(), own.asc()).limit(1)
        behind = of_lab.where(is_after(created, own, here)).order_by(created.desc(), own.desc()).limit(1)
        return await self._session.run(
            lambda connection: tuple(connection.execute(query).scalar_one_or_none() for query in (before, behind))
        )

    async def _since(
        self,
        lab_id: str,
        wanted: BrowseFilter,
        conditions: Sequence[ColumnElement[bool]],
        after: PageEnd | None,
        key: tuple[Column[Any], Column[Any]],
    ) -> datetime | None:
        """The moment before which a search does not look; None where it looks at everything."""
        if not wanted.looks_through:
            return None
        created, own = key
        rows = select(created).where(created.table.c.lab_id == lab_id, *conditions)
        rows = rows.order_by(created.desc(), own.desc()).offset(LOOKED_THROUGH - 1).limit(1)
        if after is not None:
            rows = rows.where(is_after(*key, after))
        return await self._session.run(lambda connection: connection.execute(rows).scalar_one_or_none())

    async def _page(
        self,
        rows: Select[Any],
        limit: int,
        after: PageEnd | None,
        skip: int,
        key: tuple[Column[Any], Column[Any]],
    ) -> list[RowMapping]:
        page = rows.limit(limit).offset(skip) if skip else rows.limit(limit)
        if after is not None:
            page = page.where(is_after(*key, after))
        return await self._session.run(lambda connection: list(connection.execute(page).mappings()))

    async def _first_words(self, lab_id: str, episode_ids: Sequence[str]) -> dict[str, str]:
        if not episode_ids:
            return {}
        rows = (
            select(_TURN.c.episode_id, func.substr(_TURN.c.agent_content, 1, 200))
            .join(_EPISODE, _EPISODE.c.episode_id == _TURN.c.episode_id)
            .where(_EPISODE.c.lab_id == lab_id, _TURN.c.turn == 1, _TURN.c.episode_id.in_(list(episode_ids)))
        )
        return await self._session.run(lambda connection: {item_id: text for item_id, text in connection.execute(rows)})


def _sorted(
    rows: Select[Any], order: Order, known: Mapping[Order, ColumnElement[Any]], *key: Column[Any]
) -> Select[Any]:
    first = [known[order]] if order in known else []
    return rows.order_by(*first, *(column.desc() for column in key))


def _own_conditions(lab_id: str, wanted: BrowseFilter, now: datetime) -> list[ColumnElement[bool]]:
    """The conditions on episodes that their turns have no part in."""
    conditions = _common(_EPISODE, wanted)
    if wanted.status is not None:
        conditions.append(_has_status(wanted.status, now))
    if wanted.agent_id is not None:
        played = select(_PLAYED.c.episode_id).where(_PLAYED.c.lab_id == lab_id, _PLAYED.c.agent_id == wanted.agent_id)
        conditions.append(_EPISODE.c.episode_id.in_(played))
    return conditions


def _episode_conditions(
    lab_id: str, wanted: BrowseFilter, now: datetime, since: datetime | None
) -> list[ColumnElement[bool]]:
    conditions = _own_conditions(lab_id, wanted, now)
    if since is not None:
        conditions.append(_EPISODE.c.created_at >= since)
    if wanted.least is not None:
        conditions.append(_TURN.c.reward >= wanted.least)
    if wanted.most is not None:
        conditions.append(_TURN.c.reward <= wanted.most)
    if wanted.capped_by is not None:
        conditions.append(_capped_by(_TURN.c.answer, wanted.capped_by))
    if wanted.text is not None:
        turn = _TURN.alias("said")
        holds_text = or_(
            turn.c.agent_content.icontains(wanted.text, autoescape=True),
            turn.c.observation.icontains(wanted.text, autoescape=True),
        )
        in_turns = (
            select(turn.c.episode_id)
            .join(_OTHER, _OTHER.c.episode_id == turn.c.episode_id)
            .where(_OTHER.c.lab_id == lab_id, holds_text)
        )
        if since is not None:
            in_turns = in_turns.where(_OTHER.c.created_at >= since)
        in_opening = _EPISODE.c.opening.icontains(wanted.text, autoescape=True)
        conditions.append(or_(_EPISODE.c.episode_id.in_(in_turns), in_opening))
    return conditions


def _evaluation_conditions(wanted: BrowseFilter, since: datetime | None) -> list[ColumnElement[bool]]:
    conditions = _common(_EVALUATION, wanted)
    if since is not None:
        conditions.append(_EVALUATION.c.created_at >= since)
    if wanted.source is not None:
        conditions.append(_EVALUATION.c.source == wanted.source)
    if wanted.least is not None:
        conditions.append(_EVALUATION.c.reward >= wanted.least)
    if wanted.most is not None:
        conditions.append(_EVALUATION.c.reward <= wanted.most)
    if wanted.capped_by is not None:
        conditions.append(_capped_by(_EVALUATION.c.answer, wanted.capped_by))
    if wanted.text is not None:
        conditions.append(cast(_EVALUATION.c.messages, Text).icontains(wanted.text, autoescape=True))
    return conditions


def _common(table: Any, wanted: BrowseFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.collections is not None:
        conditions.append(table.c.collection.in_(wanted.collections))
    if wanted.scenario is not None:
        conditions.append(table.c.scenario == wanted.scenario)
    if wanted.since is not None:
        conditions.append(table.c.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(table.c.created_at < wanted.until)
    return conditions


def _capped_by(answer: ColumnElement[Any], cap: str) -> ColumnElement[bool]:
    """The condition that an answer names a kind of cap."""
    named = json_texts(answer["capped_by"]).table_valued("value").c.value
    return select(named).where(named == cap).exists()


def _has_status(status: EpisodeStatus, now: datetime) -> ColumnElement[bool]:
    if status is EpisodeStatus.COMPLETE:
        return _EPISODE.c.status == EpisodeStatus.COMPLETE.value
    limit = now - EPISODE_LIFETIME
    lively = _EPISODE.c.active_at > limit if status is EpisodeStatus.ACTIVE else _EPISODE.c.active_at <= limit
    return and_(_EPISODE.c.status == EpisodeStatus.ACTIVE.value, lively)


def _episode(row: RowMapping, now: datetime) -> BrowsedRow:
    status = EpisodeStatus(row["status"])
    is_expired = status is EpisodeStatus.ACTIVE and now >= row["active_at"] + EPISODE_LIFETIME
    is_scored = row["scores"] is not None or bool(row["reward"])
    return BrowsedRow(
        id=row["episode_id"],
        collection=row["collection"],
        scenario=row["scenario"],
        reward=row["reward"] if is_scored else None,
        scores=row["scores"] or {},
        capped_by=row["capped_by"] or (),
        scoring_version=row["scoring_version"],
        turns=row["turn"],
        max_turns=row["max_turns"],
        status=EpisodeStatus.EXPIRED if is_expired else status,
        terminal_reason=row["terminal_reason"],
        created_at=row["created_at"],
    )


def _evaluation(row: RowMapping) -> BrowsedRow:
    messages: list[JsonObject] = row["messages"]
    answer: JsonObject = row["answer"] or {}
    return BrowsedRow(
        id=row["evaluation_id"],
        collection=row["collection"],
        scenario=row["scenario"],
        reward=row["reward"],
        scores=row["scores"] or {},
        capped_by=answer.get("capped_by", ()),
        scoring_version=row["scoring_version"],
        turns=sum(message.get("role") == row["agent_role"] for message in messages),
        source=row["source"],
        created_at=row["created_at"],
        first=str(messages[0].get("content") or "")[:200] if messages else "",
    )
