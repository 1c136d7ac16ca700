"""Begins, plays, shows and ends episodes; how turns are played is in `turns`.

Work goes on when the client goes away. Rewards come from the one scoring path: an episode's reward is what `/evaluate`
gives its transcript.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reward_server.access import collections_asked_for, for_key, played_for
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.episodes import documents, machine
from reward_server.episodes.batches import (
    TurnEntry,
    content_of,
    entries_of,
    episodes_of,
    of_item,
    results_of,
)
from reward_server.episodes.cache import EpisodeCache, LoadedEpisode
from reward_server.episodes.machine import TerminalReason
from reward_server.episodes.scores import check_reward_config
from reward_server.episodes.stage import PersonaStage, choose_persona
from reward_server.episodes.turns import Turns, TurnStep
from reward_server.errors import EpisodeExists, FieldProblem, InvalidRequest, LabsError
from reward_server.ids import new_episode_id
from reward_server.scoring.scorer import Scorer
from reward_server.shared_state.in_flight import InFlightTurns
from reward_server.shared_state.locks import LocalLocks, Locks
from reward_server.store.records import EpisodeRow, EpisodeStatus, PageEnd
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from scenarios.library import Catalog, PublicScenario
from trainer_client.wire import MAX_TURNS, BatchEpisodesRequest, CreateEpisodeRequest, EpisodeConfig, TurnRequest

MAX_METADATA_BYTES = 4096


@dataclass(frozen=True)
class EpisodePage:
    """Some of a lab's episodes, newest first."""

    bodies: list[Body]
    next: PageEnd | None


class EpisodeService:
    """All that can be done with episodes."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        stage: PersonaStage,
        scorer: Scorer,
        idempotency: Idempotency,
        clock: Clock,
        metrics: Metrics,
        new_seed: Callable[[], int],
        locks: Locks | None = None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._stage = stage
        self._scorer = scorer
        self._idempotency = idempotency
        self._clock = clock
        self._metrics = metrics
        self._new_seed = new_seed
        self._in_flight: InFlightTurns[Body] = InFlightTurns()
        self.in_play = EpisodeCache(kept=store.has_one_server)
        self._turns = Turns(
            store=store,
            catalog=catalog,
            stage=stage,
            scorer=scorer,
            clock=clock,
            metrics=metrics,
            locks=LocalLocks() if locks is None else locks,
            in_flight=self._in_flight,
            in_play=self.in_play,
        )

    # --- create ---------------------------------------------------------------------------------

    async def create(
        self, lab: Lab, request: CreateEpisodeRequest, key: str | None, *, episode_id: str | None = None
    ) -> Body:
        """Begin an episode.

        Args:
            lab: whose it is.
            request: where and how it is played.
            key: an `Idempotency-Key`.
            episode_id: the id to give it; a new one by default.

        Raises:
            EpisodeExists: the lab has an episode of that id.
        """
        scenario = self._scenario(lab, request)
        check_config(request.config or EpisodeConfig(), scenario)
        check_reward_config(self._scorer, request.reward_config)
        work = partial(self._create, lab, request, scenario, episode_id)
        return await self._idempotency.answer(lab, key, lambda: ("episodes", request.model_dump()), work)

    async def _create(
        self, lab: Lab, request: CreateEpisodeRequest, scenario: PublicScenario, episode_id: str | None, keep: Keep
    ) -> Body:
        if episode_id is not None:
            existing = await self._store.read(lambda unit: unit.episodes.get(lab.lab_id, episode_id))
            if existing is not None:
                raise EpisodeExists
        episode = await self._begun(lab, request, scenario)
        if episode_id is not None:
            episode = replace(episode, episode_id=episode_id)
        body = documents.created(episode, scenario.card, self._version(episode))
        await self._begin([episode], body, keep)
        return body

    async def _begun(
        self, lab: Lab, request: CreateEpisodeRequest, scenario: PublicScenario, group_seed: int | None = None
    ) -> EpisodeRow:
        """An episode after the persona's first line; `group_seed` is for those whose request has no seed of its own."""
        config = request.config or EpisodeConfig()
        seed = config.seed if config.seed is not None else group_seed
        seed = self._new_seed() if seed is None else seed
        persona = choose_persona(scenario, config.persona_slug, seed)
        opening = await self._stage.open(request.collection_slug, request.scenario_slug, persona, seed, config.split)
        now = self._clock.now()
        return EpisodeRow(
            episode_id=new_episode_id(),
            lab_id=lab.lab_id,
            collection=request.collection_slug,
            scenario=request.scenario_slug,
            seed=seed,
            persona_slug=persona,
            observation_role=config.observation_role or "assistant",
            score_turns=request.score_turns,
            reward_config=request.reward_config.model_dump(exclude_unset=True) if request.reward_config else None,
            metadata=config.metadata,
            max_turns=config.max_turns or _turn_cap(scenario),
            turn=0,
            persona_state=opening.state.to_json(),
            status=EpisodeStatus.ACTIVE,
            terminal_reason=None,
            opening=opening.text,
            created_at=now,
            active_at=now,
        )

    async def create_many(self, lab: Lab, request: BatchEpisodesRequest, key: str | None) -> Body:
        """Begin a group of episodes: all of them, or none."""
        wanted = episodes_of(request)
        for index, each in enumerate(wanted):
            try:
                check_config(each.config or EpisodeConfig(), self._scenario(lab, each))
                check_reward_config(self._scorer, each.reward_config)
            except LabsError as error:
                raise error if request.items is None else of_item(error, index) from None
        work = partial(self._create_many, lab, wanted, shared=request.items is None)
        return await self._idempotency.answer(lab, key, lambda: ("batch/episodes", request.model_dump()), work)

    async def _create_many(self, lab: Lab, wanted: Sequence[CreateEpisodeRequest], keep: Keep, *, shared: bool) -> Body:
        # A group has one seed, so that its members meet the same persona in the same mood.
        seed = self._new_seed() if shared else None
        scenarios = [self._scenario(lab, each) for each in wanted]
        rows = await asyncio.gather(*(self._begun(lab, *each, seed) for each in zip(wanted, scenarios, strict=True)))
        begun = [
            documents.created(row, each.card, self._version(row)) for row, each in zip(rows, scenarios, strict=True)
        ]
        body: Body = {"episodes": begun}
        await self._begin(rows, body, keep)
        return body

    async def _begin(self, rows: Sequence[EpisodeRow], body: Body, keep: Keep) -> None:
        """Store new episodes and the answer."""

        async def begin(unit: UnitOfWork) -> None:
            await unit.episodes.add(*rows)
            await keep(unit, body)

        await self._store.write(begin)
        for row in rows:
            self.in_play.keep(LoadedEpisode(row, ()))
        self._metrics.episodes_started.inc(len(rows))

    def _version(self, row: EpisodeRow) -> str:
        """What rewards of its scenario rest on at this moment."""
        return self._scorer.version_for(row.collection, row.scenario)

    def _scenario(self, lab: Lab, request: CreateEpisodeRequest) -> PublicScenario:
        return played_for(lab, self._catalog, request.collection_slug, request.scenario_slug)

    # --- turn -----------------------------------------------------------------------------------

    async def turn(self, lab: Lab, episode_id: str, request: TurnRequest, key: str | None) -> Body:
        """Play one turn, or return the stored answer of one that was played."""
        if request.id is not None and request.id != episode_id:
            raise InvalidRequest(errors=[FieldProblem(("id",), "Must equal the episode in the path.")])

        def content() -> object:
            return "turn", episode_id, request.model_dump(exclude={"id"})

        body = await self._idempotency.answer(
            lab, key, content, partial(self._turn, lab, TurnStep(episode_id, request))
        )
        return for_key(lab, body)

    async def _turn(self, lab: Lab, step: TurnStep, keep: Keep) -> Body:
        await self._turns.play(lab, [step], keep, step.answer)
        return step.answer()

    async def play_many(self, lab: Lab, items: Sequence[TurnEntry], key: str | None) -> Body:
        """Play one turn of each of several episodes; results in the order of the items."""
        work = partial(self._play_many, lab, items)
        body = await self._idempotency.answer(lab, key, partial(content_of, items), work)
        return {**body, "results": [for_key(lab, result) for result in body["results"]]}

    async def _play_many(self, lab: Lab, items: Sequence[TurnEntry], keep: Keep) -> Body:
        entries = entries_of(items)
        steps = [entry for entry in entries if isinstance(entry, TurnStep)]
        await self._turns.play(lab, steps, keep, partial(results_of, entries))
        return results_of(entries)

    # --- read, list, end ------------------------------------------------------------------------

    async def get(self, lab: Lab, episode_id: str) -> Body:
        """The public transcript."""
        loaded = await self._load(lab, episode_id)
        body = documents.transcript(loaded.row, loaded.turns, self._clock.now(), self._version(loaded.row))
        return for_key(lab, body)

    async def last_answer(self, lab: Lab, episode_id: str) -> Body | None:
        """The answer to the last turn; None before the first one."""
        loaded = await self._load(lab, episode_id)
        if not loaded.turns:
            return None
        return for_key(lab, {"scoring_version": self._version(loaded.row), **loaded.turns[-1].answer})

    async def page(
        self,
        lab: Lab,
        *,
        limit: int,
        after: PageEnd | None,
        collection: str | None,
        scenario: str | None,
        status: EpisodeStatus | None,
    ) -> EpisodePage:
        """The lab's episodes, newest first."""
        now = self._clock.now()
        async with self._store.reading() as unit:
            # One more than asked for tells whether there is a next page.
            rows = await unit.episodes.page(
                lab.lab_id,
                limit + 1,
                now=now,
                after=after,
                collections=collections_asked_for(lab, collection),
                scenario=scenario,
                status=status,
            )
            shown = rows[:limit]
            turns = await unit.episodes.turns_of(lab.lab_id, [row.episode_id for row in shown])
        documented = (documents.transcript(row, turns[row.episode_id], now, self._version(row)) for row in shown)
        bodies = [for_key(lab, each) for each in documented]
        last = rows[limit - 1] if len(rows) > limit else None
        following = PageEnd(last.created_at, last.episode_id) if last else None
        return EpisodePage(bodies, following)

    async def end(self, lab: Lab, episode_id: str) -> Body:
        """End an active episode; one that is complete stays as it is."""
        with self._in_flight.enter(f"{lab.lab_id}/{episode_id}", "end") as entry:
            if not entry.is_owner:
                return for_key(lab, await entry.joined_answer())
            loaded = await self._load(lab, episode_id)
            now = self._clock.now()
            ended = machine.terminated(loaded.row, now)
            if ended is not loaded.row:
                await self._store.write(lambda unit: unit.episodes.finish(ended))
                self.in_play.forget(lab.lab_id, episode_id)
                self._metrics.episodes_ended.labels(TerminalReason.CLIENT_TERMINATED.value).inc()
            body = documents.transcript(ended, loaded.turns, now, self._version(ended))
            entry.answer(body)
            return for_key(lab, body)

    async def _load(self, lab: Lab, episode_id: str) -> LoadedEpisode:
        [loaded] = await self._turns.load(lab, [episode_id])
        if isinstance(loaded, LabsError):
            raise loaded
        return loaded


def check_config(config: EpisodeConfig, scenario: PublicScenario) -> None:
    """Refuse a config that the scenario cannot be played with (`InvalidRequest`)."""
    choose_persona(scenario, config.persona_slug, 0)
    cap = _turn_cap(scenario)
    if config.max_turns is not None and config.max_turns > cap:
        problem = FieldProblem(("config", "max_turns"), f"This scenario has at most {cap} turns.")
        raise InvalidRequest(errors=[problem])
    if config.metadata is not None:
        size = len(json.dumps(config.metadata, ensure_ascii=False, separators=(",", ":")).encode())
        if size > MAX_METADATA_BYTES:
            raise InvalidRequest(errors=[FieldProblem(("config", "metadata"), "Must be at most 4 kB.")])


def _turn_cap(scenario: PublicScenario) -> int:
    return min(scenario.card.max_turns, MAX_TURNS)
