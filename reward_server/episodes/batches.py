"""Many episodes in one request: a group is begun, or one step of each is played, in one pass.

A step of a batch is what a turn by itself is: same answer, same reward, same retries. What is shared is the work around
it: one read of the store, one encoding of what is new, one call of the scorer, one commit. An item that fails is an
error of its own, without a reward; the others are played.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import partial

from personas.play.simulator import Reply
from reward_server.access import for_key, scenario_for
from reward_server.auth.idempotency import Body, Keep, fingerprint
from reward_server.auth.lab import Lab
from reward_server.episodes import documents, machine
from reward_server.episodes.history import AnsweredTurn, Line, NewTurn, align, without_preamble
from reward_server.episodes.in_play import Loaded
from reward_server.episodes.service import (
    EpisodeService,
    check_config,
    check_roles,
    lines_of,
    recall,
    turn_row,
)
from reward_server.episodes.stage import Said
from reward_server.errors import (
    EpisodeComplete,
    EpisodeNotFound,
    FieldProblem,
    Forbidden,
    InvalidRequest,
    LabsError,
    TurnInProgress,
    in_a_line,
)
from reward_server.ids import IdPrefix, is_id
from reward_server.shared_state.in_flight import Entry
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow
from reward_server.store.unit_of_work import UnitOfWork
from trainer_client.wire import BatchEpisodesRequest, CreateEpisodeRequest, EpisodeConfig, TurnItem

TWICE = "Is the episode of an earlier item; a batch takes one turn of each."
EITHER = "Give either items, or collection_slug and scenario_slug with a count."


@dataclass(frozen=True)
class InvalidTurn:
    """An item that names its episode and is no turn."""

    episode_id: str
    sent: object
    """The item as it came, for telling equal requests."""
    error: LabsError


TurnEntry = TurnItem | InvalidTurn


@dataclass(frozen=True)
class _Heard:
    """A step whose persona has answered."""

    step: _Step
    loaded: Loaded
    message: Line
    reply: Reply


@dataclass(frozen=True)
class _Played:
    """A step that has a reward: what is stored of it, and what is answered."""

    step: _Step
    loaded: Loaded
    after: EpisodeRow
    row: TurnRow
    body: Body


@dataclass
class _Step:
    """An item on its way: `outcome` as soon as there is one."""

    item: TurnItem
    messages: list[Line]
    entry: Entry[Body] | None = None
    loaded: Loaded | None = None
    new: NewTurn | None = None
    outcome: Body | LabsError | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be played."""
        return self.outcome is None and self.entry is not None


class EpisodeBatches(EpisodeService):
    """Episodes, one by one and many at once."""

    # --- begin ----------------------------------------------------------------------------------

    async def create_many(self, lab: Lab, request: BatchEpisodesRequest, key: str | None) -> Body:
        """Begin a group of episodes: all of them, or none."""
        wanted = _wanted(request)
        for index, each in enumerate(wanted):
            try:
                check_config(each.config or EpisodeConfig(), scenario_for(lab, self._catalog, *_where(each)))
                self._scorer.check(each.reward_config)
            except LabsError as error:
                raise error if request.items is None else _of_item(error, index) from None
        work = partial(self._create_many, lab, wanted, shared=request.items is None)
        return await self._idempotency.answer(lab, key, lambda: ("batch/episodes", request.model_dump()), work)

    async def _create_many(self, lab: Lab, wanted: Sequence[CreateEpisodeRequest], keep: Keep, *, shared: bool) -> Body:
        # A group has one seed, so that its members meet the same persona in the same mood.
        seed = self._new_seed() if shared else None
        rows = await asyncio.gather(
            *(self._begun(lab, each, scenario_for(lab, self._catalog, *_where(each)), seed) for each in wanted)
        )
        cards = [scenario_for(lab, self._catalog, *_where(each)).card for each in wanted]
        version = self._scorer.scoring_version
        begun = [documents.created(row, card, version) for row, card in zip(rows, cards, strict=True)]
        body: Body = {"episodes": begun}

        async def begin(unit: UnitOfWork) -> None:
            await unit.episodes.add(*rows)
            await keep(unit, body)

        await self._store.write(begin)
        for row in rows:
            self.in_play.keep(Loaded(row, ()))
        self._metrics.episodes_started.inc(len(rows))
        return body

    # --- play -----------------------------------------------------------------------------------

    async def play_many(self, lab: Lab, items: Sequence[TurnEntry], key: str | None) -> Body:
        """Play one turn of each episode; results in the order of the items."""
        work = partial(self._play_many, lab, items)
        content = partial(_content, items)
        body = await self._idempotency.answer(lab, key, content, work)
        return {**body, "results": [for_key(lab, result) for result in body["results"]]}

    async def _play_many(self, lab: Lab, items: Sequence[TurnEntry], keep: Keep) -> Body:
        try:
            return await self._play_all(lab, items, keep)
        except TurnInProgress:
            # Some episode is not where it was left here: what the database says counts, as for a single turn.
            forgotten = [self.in_play.forget(lab.lab_id, item.episode_id) for item in items]
            if not any(forgotten):
                raise
        return await self._play_all(lab, items, keep)

    async def _play_all(self, lab: Lab, items: Sequence[TurnEntry], keep: Keep) -> Body:
        entries: list[_Step | InvalidTurn] = [
            item if isinstance(item, InvalidTurn) else _Step(item, lines_of(item.messages)) for item in items
        ]
        steps = [each for each in entries if isinstance(each, _Step)]
        with ExitStack() as guards:
            self._refuse_twice(steps)
            for step in steps:
                self._guard(lab, step, guards)
            await self._load_all(lab, steps)
            for step in steps:
                _align(step)
            played = await self._score_all(await self._reply_all(lab, steps), lab)
            body = await self._store_all(entries, played, keep)
        for each in played:
            self._metrics.turns.inc()
            self._count_end(each.after)
        return body

    def _refuse_twice(self, steps: Sequence[_Step]) -> None:
        seen: set[str] = set()
        for step in steps:
            if step.item.episode_id in seen:
                step.outcome = InvalidRequest(errors=[FieldProblem(("episode_id",), TWICE)])
            seen.add(step.item.episode_id)

    def _guard(self, lab: Lab, step: _Step, guards: ExitStack) -> None:
        """Own the episode for this turn, or fail: waiting for another request could be waiting for each other."""
        if step.outcome is not None:
            return
        try:
            check_roles(step.item.messages)
            self._scorer.check(step.item.reward_config)
            positioned = len(without_preamble(step.messages)) > 1
            told = ("turn", step.item.episode_id, step.item.model_dump(exclude={"episode_id"}))
            ticket = fingerprint(told) if positioned else secrets.token_hex(16)
            entry = guards.enter_context(self._in_flight.enter(f"{lab.lab_id}/{step.item.episode_id}", ticket))
            if not entry.is_owner:
                raise TurnInProgress
            step.entry = entry
        except LabsError as error:
            step.outcome = error

    async def _load_all(self, lab: Lab, steps: Sequence[_Step]) -> None:
        """One read; of episodes that another turn holds, too: what was answered before can still be had.

        None for those that go on where they were left here.
        """
        for step in (each for each in steps if each.outcome is None):
            going_on = self._going_on(lab, step.item.episode_id, step.messages)
            if going_on is not None:
                step.loaded, step.new = going_on
        asked = [
            each
            for each in steps
            if each.loaded is None and (each.outcome is None or isinstance(each.outcome, TurnInProgress))
        ]
        if not asked:
            return
        known = [each.item.episode_id for each in asked if is_id(each.item.episode_id, IdPrefix.EPISODE)]

        async def find(unit: UnitOfWork) -> tuple[dict[str, EpisodeRow], dict[str, list[TurnRow]]]:
            rows = await unit.episodes.named(lab.lab_id, known)
            return rows, await unit.episodes.turns_of(lab.lab_id, list(rows))

        rows, turns = await self._store.read(find)
        now = self._clock.now()
        for step in asked:
            row = rows.get(step.item.episode_id)
            try:
                if row is None:
                    raise EpisodeNotFound
                machine.require_alive(row, now)
                if not lab.may_use(row.collection):
                    raise Forbidden("This API key has no access to the collection of this episode.")
                step.loaded = Loaded(row, turns[row.episode_id])
            except LabsError as error:
                step.outcome = error

    async def _reply_all(self, lab: Lab, steps: Sequence[_Step]) -> list[_Heard]:
        """All personas answer, once all that is new to the encoder was encoded together."""
        ready = [(step, step.loaded, step.new.message) for step in steps if step.is_open and step.loaded and step.new]
        await self._scorer.read_ahead(
            [(loaded.row, machine.log_with(loaded.row, loaded.turns, message)) for _, loaded, message in ready]
        )

        asked: list[tuple[_Step, Loaded, Line, Said]] = []
        for step, loaded, message in ready:
            try:
                asked.append((step, loaded, message, self._said(lab, loaded, message)))
            except LabsError as error:
                step.outcome = error
        heard = []
        replies = await self._stage.replies([said for *_, said in asked])
        for (step, loaded, message, _), reply in zip(asked, replies, strict=True):
            if isinstance(reply, LabsError):
                step.outcome = reply
            else:
                heard.append(_Heard(step, loaded, message, reply))
        return heard

    async def _score_all(self, heard: Sequence[_Heard], lab: Lab) -> list[_Played]:
        """One call of the scorer for all of them; those that got no reward are errors."""
        logs = [
            (
                each.loaded.row,
                machine.log_with(each.loaded.row, each.loaded.turns, each.message, each.reply.text),
                each.step.item.reward_config,
            )
            for each in heard
        ]
        played = []
        for each, score in zip(heard, await self._scorer.score_all(logs), strict=True):
            if isinstance(score, LabsError):
                each.step.outcome = score
            else:
                after, body = self._answered(
                    lab, each.loaded, each.message, each.reply, score, terminate=each.step.item.terminate
                )
                row = turn_row(after, each.message, each.reply.text, score, body)
                played.append(_Played(each.step, each.loaded, after, row, body))
        return played

    async def _store_all(self, entries: Sequence[_Step | InvalidTurn], played: Sequence[_Played], keep: Keep) -> Body:
        """One commit for all turns and for the answer."""
        for each in played:
            each.step.outcome = each.body
        body: Body = {"results": [_result(entry) for entry in entries]}

        async def store(unit: UnitOfWork) -> None:
            if len(await unit.episodes.append_turns([(each.after, each.row) for each in played])) < len(played):
                raise TurnInProgress
            await keep(unit, body)

        await self._store.write(store)
        for each in played:
            self.in_play.keep(each.loaded.with_turn(each.after, each.row))
            if each.step.entry is not None:
                each.step.entry.answer(each.body)
        return body


def _align(step: _Step) -> None:
    """What the item asks for, where that is not known yet; one that was answered before has its answer."""
    if step.loaded is None or step.new is not None:
        return
    if isinstance(step.outcome, TurnInProgress) or step.loaded.row.status is EpisodeStatus.COMPLETE:
        refusal = step.outcome if isinstance(step.outcome, TurnInProgress) else EpisodeComplete()
        step.outcome = recall(step.loaded, step.messages) or refusal
        return
    try:
        aligned = align(step.messages, machine.log_of(step.loaded.row, step.loaded.turns))
    except LabsError as error:
        step.outcome = error
        return
    if isinstance(aligned, AnsweredTurn):
        step.outcome = step.loaded.turns[aligned.turn - 1].answer
    else:
        step.new = aligned


def _result(entry: _Step | InvalidTurn) -> Body:
    """The item's place in the answer."""
    if isinstance(entry, InvalidTurn):
        return _failed(entry.episode_id, entry.error)
    if isinstance(entry.outcome, dict):
        return {"episode_id": entry.item.episode_id, "status": "success", **entry.outcome}
    return _failed(entry.item.episode_id, entry.outcome or LabsError())


def _failed(episode_id: str, error: LabsError) -> Body:
    return {"episode_id": episode_id, "status": "error", "message": in_a_line(error), "code": error.code}


def _content(items: Sequence[TurnEntry]) -> object:
    return "batch/turns", [item.model_dump() if isinstance(item, TurnItem) else item.sent for item in items]


def _where(request: CreateEpisodeRequest) -> tuple[str, str]:
    return request.collection_slug, request.scenario_slug


def _of_item(error: LabsError, index: int) -> LabsError:
    """The same error, which says the item it is of."""
    told = copy(error)
    if isinstance(told, InvalidRequest) and told.errors:
        told.errors = tuple(FieldProblem(("items", index, *each.loc), each.msg) for each in told.errors)
    else:
        told.message = f"items.{index}: {error.message}"
    return told


def _wanted(request: BatchEpisodesRequest) -> list[CreateEpisodeRequest]:
    """The episodes that are asked for, one by one."""
    if request.items is not None:
        if request.count is not None or request.collection_slug is not None or request.scenario_slug is not None:
            raise InvalidRequest(errors=[FieldProblem(("items",), EITHER)])
        return request.items
    if request.count is None or request.collection_slug is None or request.scenario_slug is None:
        raise InvalidRequest(errors=[FieldProblem((), EITHER)])
    one = CreateEpisodeRequest(
        collection_slug=request.collection_slug,
        scenario_slug=request.scenario_slug,
        score_turns=request.score_turns,
        config=request.config,
        reward_config=request.reward_config,
    )
    return [one] * request.count
