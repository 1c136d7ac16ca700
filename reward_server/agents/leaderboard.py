"""Agents of a lab by what they reached in a collection.

Only rewards of one scoring version stand in one table, and only agents that played every scenario have a rank: the
mean of another is a mean of something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from reward_server.access import collection_for, scenario_for
from reward_server.agents.interval import CONFIDENCE, Stratum, interval_of, mean_of
from reward_server.agents.passes import PASSES_AT, pass_k
from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.scoring.scorer import Scorer
from reward_server.store.agent_records import AgentRow, StandingRow
from reward_server.store.store import Store
from scenarios.library import Catalog

DECIMALS = 4


class Leaderboard:
    """The table."""

    def __init__(self, store: Store, catalog: Catalog, scorer: Scorer) -> None:
        self._store = store
        self._catalog = catalog
        self._scorer = scorer

    async def of(
        self, lab: Lab, collection: str, scenario: str | None, version: str | None, passes_at: float = PASSES_AT
    ) -> Body:
        """The lab's agents in a collection, or in one scenario of it, under a scoring version (None: the present one).

        A seed passes with a reward of `passes_at`.

        Raises:
            CollectionNotFound, ScenarioNotFound, Forbidden: as for any other call.
        """
        if scenario is None:
            wanted = sorted(collection_for(lab, self._catalog, collection).scenarios)
        else:
            scenario_for(lab, self._catalog, collection, scenario)
            wanted = [scenario]
        version = version or self._scorer.version_for(collection, wanted[0] if wanted else "")
        async with self._store.reading() as unit:
            agents = await unit.agents.of(lab.lab_id)
            standings = await unit.agents.standings(lab.lab_id, collection, version, passes_at)
            versions = await unit.agents.versions(lab.lab_id, collection)
        return {
            "collection_slug": collection,
            "scoring_version": version,
            "scenarios": wanted,
            "confidence": CONFIDENCE,
            "passes_at": passes_at,
            "data": ranked(agents, standings, wanted),
            "other_versions": {name: count for name, count in versions.items() if name != version},
        }


def ranked(agents: Sequence[AgentRow], standings: Sequence[StandingRow], wanted: Sequence[str]) -> list[Body]:
    """Rows with the best first; those without a rank behind all others. Equal means share a rank."""
    by_agent: defaultdict[str, list[StandingRow]] = defaultdict(list)
    for each in standings:
        if each.scenario in wanted:
            by_agent[each.agent_id].append(each)
    rows = [_row(agent, by_agent[agent.agent_id]) for agent in agents if by_agent[agent.agent_id]]
    rows.sort(key=lambda row: (len(row["scenarios"]) < len(wanted), -row["mean"], row["agent_id"]))
    complete = [row["mean"] for row in rows if len(row["scenarios"]) == len(wanted)]
    return [{"rank": complete.index(row["mean"]) + 1, **row} for row in rows[: len(complete)]] + rows[len(complete) :]


def _row(agent: AgentRow, found: Sequence[StandingRow]) -> Body:
    found = sorted(found, key=lambda each: each.scenario)
    strata = [Stratum(each.seeds, each.mean, each.mean_square) for each in found]
    row: Body = {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "mean": round(mean_of(strata), DECIMALS),
        "pass_k": pass_k([(each.seeds, each.passed) for each in found]),
        "episodes": sum(each.episodes for each in found),
        "scenarios": {each.scenario: {"mean": round(each.mean, DECIMALS), "seeds": each.seeds} for each in found},
    }
    interval = interval_of(strata)
    if interval is not None:
        row["interval"] = {"low": round(interval[0], DECIMALS), "high": round(interval[1], DECIMALS)}
    return row
