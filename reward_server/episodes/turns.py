"""Plays turns: of one episode, or of many in one request. A single turn is a batch of one.

Whoever plays a turn owns the episode meanwhile: in this process, and among replicas. The work is shared by all turns of
a request: one read of the store, one encoding of what is new, one call of the scorer, one commit. A turn that fails is
an error of its own, without a reward; the others are played. Turns and their answers become durable in one transaction
before the answer is given, and what failed leaves no trace.

A turn that is alone in its request waits for an equal request that is being answered, and gets its answer. One among
others is refused: those who own one episode and wait for another could be waiting for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from personas.hearing.types import AgentTurn
from personas.play.simulator import Reply
from reward_server.access import scenario_for
from reward_server.auth.idempotency import Body, Keep, fingerprint
from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.episodes import documents, machine
from reward_server.episodes.cache import EpisodeCache, LoadedEpisode
from reward_server.episodes.history import AnsweredTurn, HistoryLine, NewTurn, align, without_preamble
from reward_server.episodes.scores import TurnScore, check_reward_config, request_of, shown, unscored
from reward_server.episodes.stage import PersonaInput, PersonaStage
from reward_server.errors import (
    EpisodeComplete,
    EpisodeNotFound,
    FieldProblem,
    Forbidden,
    InvalidRequest,
    LabsError,
    TurnInProgress,
)
from reward_server.ids import IdPrefix, is_id, new_token
from reward_server.scoring.pending import StartedScoring
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Unscored
from reward_server.scoring.scorer import Scorer
from reward_server.shared_state.in_flight import InFlightTurns, TurnEntry
from reward_server.shared_state.locks import LockBusy, Locks
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.spoken import utterance
from reward_server.transcripts.tool_results import tool_results
from reward_server.transcripts.transcript import IGNORED_ROLES, PARTIES, UNKNOWN_ROLE, valid_tool_ids
from scenarios.library import Catalog
from scenarios.schema import Tool
from trainer_client.wire import Message, ToolCall, TurnItem, TurnRequest


class TurnStep:
    """A turn that a request asks for, on its way: `outcome` as soon as there is one."""

    def __init__(self, episode_id: str, request: TurnRequest | TurnItem) -> None:
        self.episode_id = episode_id
        self.request = request
        self.messages = lines_of(request.messages)
        self.entry: TurnEntry[Body] | None = None
        self.loaded: LoadedEpisode | None = None
        self.message: HistoryLine | None = None
        """The new message of the agent, once it is known to be one."""
        self.outcome: Body | LabsError | None = None

    @property
    def ticket(self) -> str:
        """Equal for equal requests. A lone message that is sent again is a new turn, so it is never equal."""
        if len(without_preamble(self.messages)) <= 1:
            return new_token()
        return fingerprint(("turn", self.episode_id, self.request.model_dump(exclude={"id", "episode_id"})))

    def align(self) -> None:
        """Align the messages with the loaded episode: they ask for a new turn, or one that was answered before."""
        row, turns = self._episode.row, self._episode.turns
        refusal: LabsError | None = self.outcome if isinstance(self.outcome, TurnInProgress) else None
        if row.status is EpisodeStatus.COMPLETE:
            refusal = refusal or EpisodeComplete()
        try:
            aligned = align(self.messages, machine.log_of(row, turns))
        except LabsError as error:
            self.outcome = refusal or error
            return
        if isinstance(aligned, AnsweredTurn):
            self.outcome = turns[aligned.turn - 1].answer
        elif refusal is not None:
            self.outcome = refusal
        else:
            self.message = aligned.message

    def goes_on_from(self, kept: LoadedEpisode) -> bool:
        """True if the messages bring a new turn to the episode as it is kept here; then that is what is played."""
        try:
            aligned = align(self.messages, machine.log_of(kept.row, kept.turns))
        except LabsError:
            return False
        if isinstance(aligned, NewTurn):
            self.loaded, self.message = kept, aligned.message
        return self.loaded is not None

    def answer(self) -> Body:
        """Return the answer; raise the failure."""
        if isinstance(self.outcome, dict):
            return self.outcome
        raise self.outcome or LabsError()

    def settle(self) -> None:
        """Tell whoever waits for an equal request what came of it."""
        if self.entry is None or self.outcome is None:
            return
        if isinstance(self.outcome, LabsError):
            self.entry.fail(self.outcome)
        else:
            self.entry.answer(self.outcome)

    def again(self, outcome: LabsError | None = None) -> None:
        """Forget how far it came."""
        self.loaded, self.message, self.outcome = None, None, outcome

    @property
    def _episode(self) -> LoadedEpisode:
        if self.loaded is None:
            raise RuntimeError("the episode is not loaded yet")
        return self.loaded


@dataclass(frozen=True, slots=True)
class _New:
    """A turn to be played: of an episode as it was loaded, with what the agent says."""

    step: TurnStep
    loaded: LoadedEpisode
    message: HistoryLine
    tools: Sequence[Tool]

    @property
    def said(self) -> PersonaInput:
        """The persona's input: the agent's turn and the lines before it."""
        agent_turn = AgentTurn(utterance(self.message.content).text, valid_tool_ids(_calls(self.message), self.tools))
        turns = self.loaded.turns
        return PersonaInput(
            self.loaded.row,
            agent_turn,
            [self.loaded.row.opening, *(turn.observation for turn in turns)],
            [utterance(turn.agent_content).text for turn in turns],
        )

    def log(self, reply: Reply | None = None) -> list[HistoryLine]:
        """The conversation with this turn."""
        persona_text = None if reply is None else reply.text
        return machine.log_with(self.loaded.row, self.loaded.turns, self.message, persona_text)


@dataclass(frozen=True, slots=True)
class _Played:
    """A turn that has a reward: the episode after it, and what is stored of it."""

    new: _New
    after: EpisodeRow
    row: TurnRow


class Turns:
    """The turns of all episodes."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        stage: PersonaStage,
        scorer: Scorer,
        clock: Clock,
        metrics: Metrics,
        locks: Locks,
        in_flight: InFlightTurns[Body],
        in_play: EpisodeCache,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._stage = stage
        self._scorer = scorer
        self._clock = clock
        self._metrics = metrics
        self._locks = locks
        self._in_flight = in_flight
        self._in_play = in_play

    async def play(self, lab: Lab, steps: Sequence[TurnStep], keep: Keep, answer: Callable[[], Body]) -> None:
        """Give each step its outcome; `keep` is done with `answer` in the transaction that stores the turns.

        Raises:
            TurnInProgress: several were to be played, and somebody else was faster with one of them.
        """
        async with AsyncExitStack() as locks:
            for step in steps:
                if step.outcome is None:
                    await self._own(lab, step, locks, alone=len(steps) == 1)
            await self._lock(lab, steps, locks)
            await self._play(lab, steps, keep, answer)
            for step in steps:
                step.settle()

    async def load(self, lab: Lab, episode_ids: Sequence[str]) -> list[LoadedEpisode | LabsError]:
        """The lab's episodes; another lab's, an expired and an unknown one are all not found."""
        known = [episode_id for episode_id in episode_ids if is_id(episode_id, IdPrefix.EPISODE)]

        async def find(unit: UnitOfWork) -> tuple[dict[str, EpisodeRow], dict[str, list[TurnRow]]]:
            rows = await unit.episodes.named(lab.lab_id, known)
            return rows, await unit.episodes.turns_of(lab.lab_id, list(rows))

        rows, turns = await self._store.read(find) if known else ({}, {})
        now = self._clock.now()
        return [_usable(lab, rows.get(episode_id), turns.get(episode_id, ()), now=now) for episode_id in episode_ids]

    # --- own, lock ------------------------------------------------------------------------------

    async def _own(self, lab: Lab, step: TurnStep, held: AsyncExitStack, *, alone: bool) -> None:
        """Own the episode in this process, or fail."""
        try:
            check_roles(step.request.messages)
            check_reward_config(self._scorer, step.request.reward_config)
            entry = held.enter_context(self._in_flight.enter(f"{lab.lab_id}/{step.episode_id}", step.ticket))
            if entry.is_owner:
                step.entry = entry
            elif alone:
                step.outcome = await entry.joined_answer()
            else:
                raise TurnInProgress
        except LabsError as error:
            step.outcome = error

    async def _lock(self, lab: Lab, steps: Sequence[TurnStep], held: AsyncExitStack) -> None:
        """Keep other replicas from the episodes that are owned here; what they are playing fails."""
        owned = [step for step in steps if step.entry is not None]
        if len(steps) == 1:
            for step in owned:
                await self._hold(lab, step, step.ticket, held)
        else:
            # Nobody else has such a ticket, so these wait for nobody.
            await asyncio.gather(*(self._hold(lab, step, new_token(), held) for step in owned))

    async def _hold(self, lab: Lab, step: TurnStep, ticket: str, held: AsyncExitStack) -> None:
        try:
            await held.enter_async_context(self._locks.hold(f"turn/{lab.lab_id}/{step.episode_id}", ticket))
        except LockBusy:
            step.outcome = TurnInProgress()

    # --- play -----------------------------------------------------------------------------------

    async def _play(self, lab: Lab, steps: Sequence[TurnStep], keep: Keep, answer: Callable[[], Body]) -> None:
        while True:
            await self._load(lab, steps)
            played = await self._score(lab, steps)
            if not played:
                return
            try:
                await self._store.append_turns(
                    [(each.after, each.row) for each in played], lambda unit: keep(unit, answer())
                )
            except TurnInProgress as refusal:
                if any([self._in_play.forget(lab.lab_id, each.new.step.episode_id) for each in played]):
                    # Some episode is not where it was left here: what the database says counts.
                    for each in played:
                        each.new.step.again()
                elif len(steps) == 1:
                    steps[0].again(refusal)
                else:
                    raise
            else:
                self._stored(played)
                return

    def _stored(self, played: Sequence[_Played]) -> None:
        for each in played:
            self._in_play.keep(each.new.loaded.with_turn(each.after, each.row))
            self._metrics.turns.inc()
            if each.after.terminal_reason is not None:
                self._metrics.episodes_ended.labels(each.after.terminal_reason).inc()

    async def _load(self, lab: Lab, steps: Sequence[TurnStep]) -> None:
        """Nothing is read for episodes that go on where they were left here.

        Those that another turn holds are read, too: what was answered before can still be had.
        """
        unloaded = []
        for step in steps:
            is_open = step.outcome is None and not self._goes_on(lab, step)
            if is_open or isinstance(step.outcome, TurnInProgress):
                unloaded.append(step)
        if not unloaded:
            return
        found = await self.load(lab, [step.episode_id for step in unloaded])
        for step, loaded in zip(unloaded, found, strict=True):
            if isinstance(loaded, LabsError):
                step.outcome = loaded
            else:
                step.loaded = loaded
                step.align()

    def _goes_on(self, lab: Lab, step: TurnStep) -> bool:
        cached = self._in_play.find(lab.lab_id, step.episode_id)
        if cached is None or not lab.may_use(cached.row.collection):
            return False
        return cached.row.status_at(self._clock.now()) is EpisodeStatus.ACTIVE and step.goes_on_from(cached)

    async def _score(self, lab: Lab, steps: Sequence[TurnStep]) -> list[_Played]:
        """All personas answer, and one call of the scorer rewards them; what fails is the outcome of its step."""
        new = self._new(lab, steps)
        if not new:
            return []
        if len(new) > 1:
            await self._scorer.read_ahead([partial(self._request, each) for each in new if each.loaded.row.score_turns])
        begin = self._scorer.begin()

        def begun(number: int, reply: Reply) -> StartedScoring | None:
            return begin(partial(self._request, new[number], reply)) if new[number].loaded.row.score_turns else None

        replies = await self._stage.replies([each.said for each in new], begun)
        waiting = [reply[1] for reply in replies if not isinstance(reply, LabsError) and reply[1] is not None]
        scored = iter(await self._scorer.finish(waiting))
        played = []
        for each, reply in zip(new, replies, strict=True):
            outcome = reply if isinstance(reply, LabsError) else None if reply[1] is None else next(scored)
            if isinstance(outcome, LabsError | Unscored):
                each.step.outcome = outcome.error if isinstance(outcome, Unscored) else outcome
            elif not isinstance(reply, LabsError):
                score = (
                    unscored(self._scorer.version_for(each.loaded.row.collection, each.loaded.row.scenario))
                    if outcome is None
                    else shown(outcome)
                )
                played.append(self._taken(each, reply[0], score))
        return played

    def _new(self, lab: Lab, steps: Sequence[TurnStep]) -> list[_New]:
        new = []
        for step in steps:
            if step.outcome is None and step.loaded is not None and step.message is not None:
                row = step.loaded.row
                try:
                    tools = scenario_for(lab, self._catalog, row.collection, row.scenario).card.tools
                except LabsError as error:
                    step.outcome = error
                else:
                    new.append(_New(step, step.loaded, step.message, tools))
        return new

    def _request(self, new: _New, reply: Reply | None = None) -> ScoreRequest:
        """In a thread."""
        return request_of(self._scorer, new.loaded.row, new.log(reply), new.step.request.reward_config)

    def _taken(self, new: _New, reply: Reply, score: TurnScore) -> _Played:
        """The episode after a turn, and the answer to it."""
        after = machine.after_turn(
            new.loaded.row,
            persona_state=reply.state.to_json(),
            persona_done=reply.ended is not None,
            terminate=new.step.request.terminate,
            now=self._clock.now(),
        )
        before = new.loaded.turns[-1].reward if new.loaded.turns else 0.0
        calls = tool_results(_calls(new.message), new.tools)
        delta = machine.reward_delta(score.reward, before)
        body = new.step.outcome = documents.turn_taken(after, reply.text, score, delta, calls)
        return _Played(new, after, _turn_row(after, new.message, reply.text, score, body))


def check_roles(messages: Sequence[Message]) -> None:
    """Refuse roles that nobody has in an episode (`InvalidRequest`)."""
    for index, message in enumerate(messages):
        if message.role not in PARTIES | IGNORED_ROLES:
            problem = FieldProblem(("messages", index, "role"), UNKNOWN_ROLE)
            raise InvalidRequest(errors=[problem])


def lines_of(messages: Sequence[Message]) -> list[HistoryLine]:
    """The messages of the two parties, and those in front. What tools answered the agent is part of its turn."""
    return [_line_of(message) for message in messages if message.role != "tool"]


def _line_of(message: Message) -> HistoryLine:
    """A message as the log has it."""
    calls = None if message.tool_calls is None else tuple(c.model_dump(exclude_none=True) for c in message.tool_calls)
    return HistoryLine(message.role, message.content, calls)


def _calls(message: HistoryLine) -> list[ToolCall]:
    calls = [ToolCall.model_validate(call) for call in message.tool_calls or ()]
    return [*calls, *utterance(message.content).calls]


def _usable(lab: Lab, row: EpisodeRow | None, turns: Sequence[TurnRow], *, now: datetime) -> LoadedEpisode | LabsError:
    if row is None or row.status_at(now) is EpisodeStatus.EXPIRED:
        return EpisodeNotFound()
    if not lab.may_use(row.collection):
        return Forbidden("This API key has no access to the collection of this episode.")
    return LoadedEpisode(row, turns)


def _turn_row(after: EpisodeRow, message: HistoryLine, observation: str, score: TurnScore, body: Body) -> TurnRow:
    """The row that stores a turn."""
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
