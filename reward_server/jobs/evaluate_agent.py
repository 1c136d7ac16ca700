"""Jobs of type `evaluate_agent`: an agent plays scenarios x seeds; every item is an episode.

What an item came to is on the leaderboard in the transaction that finishes the item, so it counts once however often
workers are killed; an episode that was under way goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from pydantic_core import to_json

from reward_server.access import collection_for, played_for
from reward_server.agents.play import AgentPlayer, FinishedEpisodePlay
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.clock import Clock
from reward_server.errors import FieldProblem, InvalidRequest, LabsError, LeaseLost, StoreUnavailable
from reward_server.jobs.evaluate import check_scenario
from reward_server.jobs.kinds import JobItem, LineReader, Record, Work, failed_by, record_alone, succeeded
from reward_server.store.agent_records import AgentEpisodeRow, AgentRow
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from scenarios.library import Catalog
from trainer_client.wire import AgentItem

SEEDS = range(8)
"""Where a job names none."""
WHERE = "Name a collection, and a scenario if it is only one; or give items of a scenario and a seed each."
ITS_OWN = "Items have their own seeds."


class EvaluateAgentItems:
    """Has an agent play."""

    slice_size = 8
    whole = None

    def __init__(self, player: AgentPlayer, catalog: Catalog, lines: LineReader, store: Store, clock: Clock) -> None:
        self._agents = player.agents
        self._player = player
        self._catalog = catalog
        self._lines = lines
        self._store = store
        self._clock = clock

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Refuse unknown scenarios, an agent that is not the lab's, and a key that may not play episodes."""
        check_scenario(lab, self._catalog, params)
        await self._agents.get(lab, params["agent"]["agent_id"])
        lab.require(Scope.TRAIN)

    def check_input(self, params: JsonObject) -> None:
        """Refuse seeds beside items that have their own."""
        if "seeds" in params["agent"]:
            raise InvalidRequest(errors=[FieldProblem(("agent", "seeds"), ITS_OWN)])

    async def collect(self, lab: Lab, params: JsonObject) -> AsyncIterator[bytes]:
        """Every scenario that is asked for with every seed, as lines; `InvalidRequest` without a collection."""
        collection, scenario = params.get("collection_slug"), params.get("scenario_slug")
        if collection is None:
            raise InvalidRequest(errors=[FieldProblem(("collection_slug",), WHERE)])
        there = collection_for(lab, self._catalog, collection).played
        if scenario is not None:
            played_for(lab, self._catalog, collection, scenario)
        for seed in params["agent"].get("seeds", SEEDS):
            for slug in sorted(there) if scenario is None else [scenario]:
                yield to_json({"collection_slug": collection, "scenario_slug": slug, "seed": seed}) + b"\n"

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Play these at once; each is stored as soon as it is over."""
        agent = await self._agents.get(work.lab, work.params["agent"]["agent_id"])
        outcomes = await asyncio.gather(
            *(self._one(work, agent, item, record) for item in items), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one(self, work: Work, agent: AgentRow, item: JobItem, record: Record) -> None:
        try:
            wanted = await self._lines.read(AgentItem, item.line, _defaults(work.params))
            played = await self._player.play(work.lab, agent, wanted, f"{work.job_id}/{item.index}", work.read)
            row = self._row(work, item, agent, wanted, played)
            async with self._store.transaction() as unit:
                # First: who has lost the lease may not add an episode either.
                await record(unit, [succeeded(item.index, _shown(item, wanted, played))])
                await unit.agents.add_episode(row)
        except (LeaseLost, StoreUnavailable):
            raise
        except LabsError as error:
            await record_alone(self._store, record, [failed_by(item.index, error)])

    def _row(
        self, work: Work, item: JobItem, agent: AgentRow, wanted: AgentItem, played: FinishedEpisodePlay
    ) -> AgentEpisodeRow:
        return AgentEpisodeRow(
            job_id=work.job_id,
            item_index=item.index,
            lab_id=work.lab.lab_id,
            agent_id=agent.agent_id,
            episode_id=played.episode_id,
            collection=wanted.collection_slug,
            scenario=wanted.scenario_slug,
            seed=wanted.seed,
            reward=played.reward,
            scoring_version=played.scoring_version,
            created_at=self._clock.now(),
        )


def _defaults(params: JsonObject) -> JsonObject:
    return {name: params[name] for name in ("collection_slug", "scenario_slug") if name in params}


def _shown(item: JobItem, wanted: AgentItem, played: FinishedEpisodePlay) -> JsonObject:
    return {
        "id": wanted.id or str(item.index),
        "episode_id": played.episode_id,
        "collection_slug": wanted.collection_slug,
        "scenario_slug": wanted.scenario_slug,
        "seed": wanted.seed,
        "reward": played.reward,
        "scoring_version": played.scoring_version,
        "turns": played.turns,
        "terminal_reason": played.terminal_reason,
    }
