"""Scored conversations, and the statistics of a lab's recent rewards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, func, insert, select

from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.pages import everything
from reward_server.store.records import EvaluationRow, EvaluationSource, Stats
from reward_server.store.session import Session
from reward_server.store.tables import EvaluationTable, table_of

_EVALUATION = table_of(EvaluationTable)
_ADD = insert(_EVALUATION)
_GET = select(_EVALUATION).where(
    _EVALUATION.c.lab_id == bindparam("lab_id"), _EVALUATION.c.evaluation_id == bindparam("evaluation_id")
)


class EvaluationRepository:
    """Evaluations of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add_many(self, rows: Sequence[EvaluationRow]) -> None:
        """Store evaluations; none is fine."""
        if rows:
            await self._session.run(lambda connection: connection.execute(_ADD, [values_of(row) for row in rows]))

    async def get(self, lab_id: str, evaluation_id: str) -> EvaluationRow | None:
        """One evaluation, with the verdicts that only the operator may see."""

        def work(connection: Connection) -> EvaluationRow | None:
            wanted = {"lab_id": lab_id, "evaluation_id": evaluation_id}
            row = connection.execute(_GET, wanted).mappings().one_or_none()
            return None if row is None else _record(row)

        return await self._session.run(work)

    async def window(self, lab_id: str, key: str, *, since: datetime | None = None, last: int | None = None) -> Stats:
        """Rewards stored under a normalisation key: since a moment, or the last so many, or both."""
        rewards = select(_EVALUATION.c.reward).where(
            _EVALUATION.c.lab_id == lab_id, _EVALUATION.c.normalization_key == key
        )
        if since is not None:
            rewards = rewards.where(_EVALUATION.c.created_at >= since)
        if last is not None:
            newest = (_EVALUATION.c.created_at.desc(), _EVALUATION.c.evaluation_id.desc())
            rewards = rewards.order_by(*newest).limit(last)
        reward = rewards.subquery().c.reward
        return await self._session.run(lambda connection: _stats(connection, reward))

    async def ids(
        self, lab_id: str, most: int, *, collections: Sequence[str] | None = None, scenario: str | None = None
    ) -> list[str]:
        """Ids of the lab's evaluations in these collections (None: in all), the oldest first."""
        rows = select(_EVALUATION.c.evaluation_id).where(_EVALUATION.c.lab_id == lab_id)
        if collections is not None:
            rows = rows.where(_EVALUATION.c.collection.in_(collections))
        if scenario is not None:
            rows = rows.where(_EVALUATION.c.scenario == scenario)
        rows = rows.order_by(_EVALUATION.c.created_at, _EVALUATION.c.evaluation_id).limit(most)
        return await self._session.run(lambda connection: list(connection.execute(rows).scalars()))

    async def of(self, lab_id: str | None = None) -> list[EvaluationRow]:
        """All evaluations of a lab, or of all labs, oldest first; for the operator, who trains models on them."""
        return [_record(row) for row in await everything(self._session, _EVALUATION, "evaluation_id", lab_id)]

    async def latest_rewards(self, lab_id: str, collection: str, scenario: str, most: int) -> list[tuple[str, float]]:
        """Scoring versions and rewards of the lab's evaluations made as the scenario says, the newest first."""
        rewards = (
            select(_EVALUATION.c.scoring_version, _EVALUATION.c.reward, _EVALUATION.c.reward_config)
            .where(
                _EVALUATION.c.lab_id == lab_id,
                _EVALUATION.c.collection == collection,
                _EVALUATION.c.scenario == scenario,
            )
            .order_by(_EVALUATION.c.created_at.desc(), _EVALUATION.c.evaluation_id.desc())
            .limit(most)
        )

        def work(connection: Connection) -> list[tuple[str, float]]:
            return [(version, float(reward)) for version, reward, config in connection.execute(rewards) if not config]

        return await self._session.run(work)

    async def plain_versions(self) -> dict[tuple[str, str], int]:
        """The number of `plain_rewards` per lab and scoring version, that of the newest first; for the operator."""
        newest_first = select(_EVALUATION.c.lab_id, _EVALUATION.c.scoring_version, _EVALUATION.c.reward_config)
        newest_first = newest_first.order_by(_EVALUATION.c.created_at.desc(), _EVALUATION.c.evaluation_id.desc())

        def work(connection: Connection) -> dict[tuple[str, str], int]:
            newest_rows = connection.execute(across_labs(newest_first))
            return dict(Counter((lab_id, version) for lab_id, version, config in newest_rows if not config))

        return await self._session.run(work)

    async def plain_rewards(self, scoring_version: str, lab_id: str | None = None) -> list[float]:
        """All rewards of a scoring version made as the scenario says, of one lab or all; for the operator."""
        rewards = select(_EVALUATION.c.reward, _EVALUATION.c.reward_config).where(
            _EVALUATION.c.scoring_version == scoring_version
        )
        rewards = across_labs(rewards) if lab_id is None else rewards.where(_EVALUATION.c.lab_id == lab_id)

        def work(connection: Connection) -> list[float]:
            return [float(reward) for reward, config in connection.execute(rewards) if not config]

        return await self._session.run(work)


def _stats(connection: Connection, reward: ColumnElement[float]) -> Stats:
    summary = select(
        func.count(reward).label("n"),
        func.avg(reward).label("mean"),
        func.min(reward).label("low"),
        func.max(reward).label("high"),
    )
    totals = connection.execute(summary).one()
    if totals.n == 0:
        return Stats(n=0, mean=0.0, std=0.0)
    if totals.low == totals.high:
        # A mean of equal numbers may be off in its last bit, and then the spread would not be exactly 0.
        return Stats(n=totals.n, mean=totals.low, std=0.0)
    # A second pass around the mean: E[x^2] - E[x]^2 would lose every digit of a small spread.
    offset = reward - totals.mean
    variance = connection.execute(select(func.avg(offset * offset))).scalar_one()
    return Stats(n=totals.n, mean=totals.mean, std=math.sqrt(variance))


def _record(row: RowMapping) -> EvaluationRow:
    return EvaluationRow(**{**row, "source": EvaluationSource(row["source"])})
