"""Plays episodes: load, let the persona answer, score the transcript so far, save, answer.

A turn and its answer become durable in one transaction before the answer is given; a turn whose
persona or judge failed leaves no trace. Work goes on when the client goes away. Rewards come from
the one scoring path: an episode's reward is what `/evaluate` gives its transcript.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from personas.hearing.heard import AgentTurn
from personas.play.simulator import Reply
from reward_server.access import collections_asked_for, for_key, scenario_for
from reward_server.auth.idempotency import Body, Idempotency, Keep, fingerprint
from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.episodes import documents, machine
from reward_server.episodes.history import AnsweredTurn, Line, NewTurn, align, without_preamble
from reward_server.episodes.in_play import InPlay, Loaded
from reward_server.episodes.scores import TurnScore, TurnScorer
from reward_server.episodes.stage import Said, Stage, choose_persona
from reward_server.errors import (
    EpisodeComplete,
    EpisodeExists,
    EpisodeNotFound,
    FieldProblem,
    Forbidden,
    InvalidRequest,
    LabsError,
    TurnInProgress,
)
from reward_server.ids import IdPrefix, is_id, new_episode_id, new_token
from reward_server.shared_state.in_flight import InFlightTurns
from reward_server.shared_state.locks import Busy, LocalLocks, Locks
from reward_server.store.records import EpisodeRow, EpisodeStatus, PageEnd, TurnRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.spoken import utterance
from reward_server.transcripts.tool_results import tool_results
from reward_server.transcripts.transcript import IGNORED_ROLES, PARTIES, UNKNOWN_ROLE, valid_tool_ids
from scenarios.library import Catalog, PublicScenario
from scenarios.schema import Tool
from trainer_client.wire import MAX_TURNS, CreateEpisodeRequest, EpisodeConfig, Message, ToolCall, TurnRequest

MAX_METADATA_BYTES = 4096


@dataclass(frozen=True)
class Page:
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
        stage: Stage,
        scorer: TurnScorer,
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
        self._locks = LocalLocks() if locks is None else locks
        self._in_flight: InFlightTurns[Body] = InFlightTurns()
        self.in_play = InPlay(kept=store.has_one_server)

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
        scenario = scenario_for(lab, self._catalog, request.collection_slug, request.scenario_slug)
        check_config(request.config or EpisodeConfig(), scenario)
        self._scorer.check(request.reward_config)
        work = partial(self._create, lab, request, scenario, episode_id)
        return await self._idempotency.answer(lab, key, lambda: ("episodes", request.model_dump()), work)

    async def _create(
        self, lab: Lab, request: CreateEpisodeRequest, scenario: PublicScenario, episode_id: str | None, keep: Keep
    ) -> Body:
        if episode_id is not None:
            found = await self._store.read(lambda unit: unit.episodes.get(lab.lab_id, episode_id))
            if found is not None:
                raise EpisodeExists
        episode = await self._begun(lab, request, scenario)
        if episode_id is not None:
            episode = replace(episode, episode_id=episode_id)
        body = documents.created(episode, scenario.card, self._scorer.scoring_version)

        async def begin(unit: UnitOfWork) -> None:
            await unit.episodes.add(episode)
            await keep(unit, body)

        await self._store.write(begin)
        self.in_play.keep(Loaded(episode, ()))
        self._metrics.episodes_started.inc()
        return body

    async def _begun(
        self, lab: Lab, request: CreateEpisodeRequest, scenario: PublicScenario, group_seed: int | None = None
    ) -> EpisodeRow:
        """An episode after the persona's first line; `group_seed` is for those whose request has no seed of its own."""
        config = request.config or EpisodeConfig()
        seed = config.seed if config.seed is not None else group_seed
        seed = self._new_seed() if seed is None else seed
        persona = choose_persona(scenario, config.persona_slug, seed)
        opening = await self._stage.open(request.collection_slug, request.scenario_slug, persona, seed)
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

    # --- turn -----------------------------------------------------------------------------------

    async def turn(self, lab: Lab, episode_id: str, request: TurnRequest, key: str | None) -> Body:
        """Play one turn, or return the stored answer of one that was played."""
        if request.id is not None and request.id != episode_id:
            raise InvalidRequest(errors=[FieldProblem(("id",), "Must equal the episode in the path.")])
        check_roles(request.messages)
        self._scorer.check(request.reward_config)

        def content() -> object:
            return "turn", episode_id, request.model_dump(exclude={"id"})

        work = partial(self._turn, lab, episode_id, request, content)
        body = await self._idempotency.answer(lab, key, content, work)
        return for_key(lab, body)

    async def _turn(
        self, lab: Lab, episode_id: str, request: TurnRequest, content: Callable[[], object], keep: Keep
    ) -> Body:
        messages = lines_of(request.messages)
        # A lone message that is sent again is a new turn, so it never joins another one.
        positioned = len(without_preamble(messages)) > 1
        ticket = fingerprint(content()) if positioned else new_token()
        try:
            with self._in_flight.enter(f"{lab.lab_id}/{episode_id}", ticket) as entry:
                if not entry.is_owner:
                    return await entry.joined_answer()
                body = await self._alone(lab, episode_id, ticket, self._play(lab, episode_id, request, messages, keep))
                entry.answer(body)
                return body
        except TurnInProgress:
            return await self._recall_or_refuse(lab, episode_id, messages)

    async def _alone(self, lab: Lab, episode_id: str, ticket: str, work: Coroutine[Any, Any, Body]) -> Body:
        """Work while no replica does another thing to the episode; after one that does the same, if need be."""
        try:
            async with self._locks.hold(f"turn/{lab.lab_id}/{episode_id}", ticket):
                return await work
        except Busy:
            raise TurnInProgress from None
        finally:
            # Whoever was refused, or gave up waiting, has never begun it.
            work.close()

    async def _recall_or_refuse(self, lab: Lab, episode_id: str, messages: Sequence[Line]) -> Body:
        """While another turn is being answered: what was answered before it can still be had."""
        loaded = await self._load(lab, episode_id)
        recalled = recall(loaded, messages)
        if recalled is None:
            raise TurnInProgress
        return recalled

    async def _play(
        self, lab: Lab, episode_id: str, request: TurnRequest, messages: Sequence[Line], keep: Keep
    ) -> Body:
        going_on = self._going_on(lab, episode_id, messages)
        if going_on is not None:
            try:
                return await self._play_new(lab, *going_on, request, keep)
            except TurnInProgress:
                # It is not where it was left: what the database says counts.
                self.in_play.forget(lab.lab_id, episode_id)
        loaded = await self._load(lab, episode_id)
        episode = loaded.row
        if episode.status is EpisodeStatus.COMPLETE:
            recalled = recall(loaded, messages)
            if recalled is None:
                raise EpisodeComplete
            return recalled
        aligned = align(messages, machine.log_of(episode, loaded.turns))
        if isinstance(aligned, AnsweredTurn):
            return loaded.turns[aligned.turn - 1].answer
        return await self._play_new(lab, loaded, aligned, request, keep)

    def _going_on(self, lab: Lab, episode_id: str, messages: Sequence[Line]) -> tuple[Loaded, NewTurn] | None:
        """The episode as its last turn left it, if that is known here and these messages bring it a new turn."""
        loaded = self.in_play.find(lab.lab_id, episode_id)
        if loaded is None or not lab.may_use(loaded.row.collection):
            return None
        if loaded.row.status_at(self._clock.now()) is not EpisodeStatus.ACTIVE:
            return None
        try:
            aligned = align(messages, machine.log_of(loaded.row, loaded.turns))
        except LabsError:
            return None
        return (loaded, aligned) if isinstance(aligned, NewTurn) else None

    async def _play_new(self, lab: Lab, loaded: Loaded, new: NewTurn, request: TurnRequest, keep: Keep) -> Body:
        episode, message = loaded.row, new.message
        begin = self._scorer.begin(episode, request.reward_config)

        def log_with(reply: Reply) -> list[Line]:
            return machine.log_with(episode, loaded.turns, message, reply.text)

        # One hand-over to the threads for both: each costs as much as the persona's answer to a known text.
        reply, begun = await self._stage.reply(
            self._said(lab, loaded, message), lambda reply: None if begin is None else begin(log_with(reply))
        )
        if begun is None:
            score = await self._scorer.score(episode, log_with(reply), request.reward_config)
        else:
            score = await self._scorer.finish(begun)
        after, body = self._answered(lab, loaded, message, reply, score, terminate=request.terminate)
        row = turn_row(after, message, reply.text, score, body)
        await self._store.append_turn(after, row, lambda unit: keep(unit, body))
        self.in_play.keep(loaded.with_turn(after, row))
        self._metrics.turns.inc()
        self._count_end(after)
        return body

    def _answered(
        self, lab: Lab, loaded: Loaded, message: Line, reply: Reply, score: TurnScore, *, terminate: bool
    ) -> tuple[EpisodeRow, Body]:
        """The episode after a turn, and the answer to it."""
        after = machine.after_turn(
            loaded.row,
            persona_state=reply.state.to_json(),
            persona_done=reply.ended is not None,
            terminate=terminate,
            now=self._clock.now(),
        )
        before = loaded.turns[-1].reward if loaded.turns else 0.0
        delta = machine.reward_delta(score.reward, before)
        calls = tool_results(_calls(message), self._tools(lab, loaded.row))
        return after, documents.turn_taken(after, reply.text, score, delta, calls)

    def _tools(self, lab: Lab, episode: EpisodeRow) -> Sequence[Tool]:
        return scenario_for(lab, self._catalog, episode.collection, episode.scenario).card.tools

    def _said(self, lab: Lab, loaded: Loaded, message: Line) -> Said:
        episode, earlier = loaded.row, [loaded.row.opening, *(turn.observation for turn in loaded.turns)]
        heard = AgentTurn(utterance(message.content).text, valid_tool_ids(_calls(message), self._tools(lab, episode)))
        return Said(episode, heard, earlier)

    # --- read, list, end ------------------------------------------------------------------------

    async def get(self, lab: Lab, episode_id: str) -> Body:
        """The public transcript."""
        loaded = await self._load(lab, episode_id)
        body = documents.transcript(loaded.row, loaded.turns, self._clock.now(), self._scorer.scoring_version)
        return for_key(lab, body)

    async def page(
        self,
        lab: Lab,
        *,
        limit: int,
        after: PageEnd | None,
        collection: str | None,
        scenario: str | None,
        status: EpisodeStatus | None,
    ) -> Page:
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
        version = self._scorer.scoring_version
        bodies = [for_key(lab, documents.transcript(row, turns[row.episode_id], now, version)) for row in shown]
        last = rows[limit - 1] if len(rows) > limit else None
        following = PageEnd(last.created_at, last.episode_id) if last else None
        return Page(bodies, following)

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
                self._count_end(ended)
            body = documents.transcript(ended, loaded.turns, now, self._scorer.scoring_version)
            entry.answer(body)
            return for_key(lab, body)

    def _count_end(self, episode: EpisodeRow) -> None:
        if episode.terminal_reason is not None:
            self._metrics.episodes_ended.labels(episode.terminal_reason).inc()

    async def _load(self, lab: Lab, episode_id: str) -> Loaded:
        """The lab's episode; another lab's, an expired and an unknown one are all not found."""
        if not is_id(episode_id, IdPrefix.EPISODE):
            raise EpisodeNotFound

        async def find(unit: UnitOfWork) -> Loaded:
            row = await unit.episodes.get(lab.lab_id, episode_id)
            if row is None:
                raise EpisodeNotFound
            return Loaded(row, await unit.episodes.turns(lab.lab_id, episode_id))

        loaded = await self._store.read(find)
        machine.require_alive(loaded.row, self._clock.now())
        if not lab.may_use(loaded.row.collection):
            raise Forbidden("This API key has no access to the collection of this episode.")
        return loaded


def recall(loaded: Loaded, messages: Sequence[Line]) -> Body | None:
    """The stored answer, if the messages are a history that was answered already."""
    try:
        aligned = align(messages, machine.log_of(loaded.row, loaded.turns))
    except LabsError:
        return None
    return loaded.turns[aligned.turn - 1].answer if isinstance(aligned, AnsweredTurn) else None


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


def check_roles(messages: Sequence[Message]) -> None:
    """Refuse roles that nobody has in an episode (`InvalidRequest`)."""
    for index, message in enumerate(messages):
        if message.role not in PARTIES | IGNORED_ROLES:
            problem = FieldProblem(("messages", index, "role"), UNKNOWN_ROLE)
            raise InvalidRequest(errors=[problem])


def _calls(message: Line) -> list[ToolCall]:
    given = [ToolCall.model_validate(call) for call in message.tool_calls or ()]
    return [*given, *utterance(message.content).calls]


def _turn_cap(scenario: PublicScenario) -> int:
    return min(scenario.card.max_turns, MAX_TURNS)


def turn_row(after: EpisodeRow, message: Line, observation: str, score: TurnScore, body: Body) -> TurnRow:
    """What is stored of a turn."""
    calls = list(message.tool_calls or ())
    return TurnRow(
        episode_id=after.episode_id,
        turn=after.turn,
        agent_content=message.content,
        tool_calls=calls or None,
        observation=observation,
        reward=score.reward,
        scores=None if score.scores is None else dict(score.scores),
        answer=body,
        fingerprint=fingerprint(message.content, calls),
        created_at=after.active_at,
    )


def lines_of(messages: Sequence[Message]) -> list[Line]:
    """The messages of the two parties, and those in front. What tools answered the agent is part of its turn."""
    return [line_of(message) for message in messages if message.role != "tool"]


def line_of(message: Message) -> Line:
    """A message as the log has it."""
    calls = None if message.tool_calls is None else tuple(c.model_dump(exclude_none=True) for c in message.tool_calls)
    return Line(message.role, message.content, calls)
