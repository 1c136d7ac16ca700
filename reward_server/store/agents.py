"""Agents of labs, and the episodes they played in jobs."""

from __future__ import annotations

from sqlalchemy import case, delete, func, insert, select, update

from reward_server.store.agent_records import AgentEpisodeRow, AgentRow, StandingRow
from reward_server.store.mapping import values_of
from reward_server.store.session import Session
from reward_server.store.tables import AgentEpisodeTable, AgentTable, table_of

_AGENT = table_of(AgentTable)
_PLAYED = table_of(AgentEpisodeTable)


class AgentRepository:
    """Agents of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: AgentRow) -> None:
        """Store an agent."""
        await self._session.run(lambda connection: connection.execute(insert(_AGENT), values_of(row)))

    async def of(self, lab_id: str) -> list[AgentRow]:
        """The lab's agents, the newest first."""
        rows = select(_AGENT).where(_AGENT.c.lab_id == lab_id)
        rows = rows.order_by(_AGENT.c.created_at.desc(), _AGENT.c.agent_id.desc())
        return await self._session.run(
            lambda connection: [AgentRow(**row) for row in connection.execute(rows).mappings()]
        )

    async def get(self, lab_id: str, agent_id: str) -> AgentRow | None:
        """One of them."""
        row = select(_AGENT).where(_AGENT.c.lab_id == lab_id, _AGENT.c.agent_id == agent_id)
        agent = await self._session.run(lambda connection: connection.execute(row).mappings().one_or_none())
        return None if agent is None else AgentRow(**agent)

    async def change(self, row: AgentRow) -> bool:
        """Store an agent anew under its id; True if there was one."""
        changes = update(_AGENT).where(_AGENT.c.lab_id == row.lab_id, _AGENT.c.agent_id == row.agent_id)
        changes = changes.values(name=row.name, settings=row.settings, sealed_key=row.sealed_key)
        return await self._session.run(lambda connection: connection.execute(changes).rowcount == 1)

    async def delete(self, lab_id: str, agent_id: str) -> bool:
        """True if there was such an agent; what it played leaves the leaderboard, the episodes stay."""
        gone = delete(_AGENT).where(_AGENT.c.lab_id == lab_id, _AGENT.c.agent_id == agent_id)
        return await self._session.run(lambda connection: connection.execute(gone).rowcount == 1)

    async def add_episode(self, row: AgentEpisodeRow) -> None:
        """Store what an agent has played; once for each item of a job, which the primary key sees to."""
        await self._session.run(lambda connection: connection.execute(insert(_PLAYED), values_of(row)))

    async def standings(
        self, lab_id: str, collection: str, scoring_version: str, passes_at: float
    ) -> list[StandingRow]:
        """The standings of the lab's agents in a collection under a scoring version, by agent and scenario."""
        seeds = (
            select(
                _PLAYED.c.agent_id,
                _PLAYED.c.scenario,
                func.count().label("episodes"),
                func.avg(_PLAYED.c.reward).label("reward"),
            )
            .where(
                _PLAYED.c.lab_id == lab_id,
                _PLAYED.c.collection == collection,
                _PLAYED.c.scoring_version == scoring_version,
            )
            .group_by(_PLAYED.c.agent_id, _PLAYED.c.scenario, _PLAYED.c.seed)
            .subquery()
        )
        rows = select(
            seeds.c.agent_id,
            seeds.c.scenario,
            func.count().label("seeds"),
            func.sum(seeds.c.episodes).label("episodes"),
            func.avg(seeds.c.reward).label("mean"),
            func.avg(seeds.c.reward * seeds.c.reward).label("mean_square"),
            func.sum(case((seeds.c.reward >= passes_at, 1), else_=0)).label("passed"),
        ).group_by(seeds.c.agent_id, seeds.c.scenario)
        rows_of_agents = await self._session.run(lambda connection: connection.execute(rows).mappings().all())
        return [
            StandingRow(
                agent_id=row["agent_id"],
                scenario=row["scenario"],
                seeds=row["seeds"],
                episodes=int(row["episodes"]),
                mean=float(row["mean"]),
                mean_square=float(row["mean_square"]),
                passed=int(row["passed"]),
            )
            for row in rows_of_agents
        ]

    async def versions(self, lab_id: str, collection: str) -> dict[str, int]:
        """The number of episodes the lab's agents played in a collection, by scoring version."""
        rows = (
            select(_PLAYED.c.scoring_version, func.count())
            .where(_PLAYED.c.lab_id == lab_id, _PLAYED.c.collection == collection)
            .group_by(_PLAYED.c.scoring_version)
            .order_by(_PLAYED.c.scoring_version)
        )
        return await self._session.run(
            lambda connection: {version: count for version, count in connection.execute(rows)}
        )
