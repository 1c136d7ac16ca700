"""Plays personas: opens and continues them off the event loop.

A simulator is pure and may run a model, so it runs in the scoring threads. Whatever it raises is a
failure of the persona: the turn is not recorded, and nothing of the case is in the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

from personas.case.temperament import Temperament
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.play.direction import character_of, direction_of
from personas.play.line_guard import LineGuard, Objection
from personas.play.simulator import Opening, Reply, Simulator, adopt
from personas.play.voice import draw
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from reward_server.errors import FieldProblem, InvalidRequest, LabsError, PersonaFailed
from reward_server.logs.logger import get_logger
from reward_server.store.records import EpisodeRow
from reward_server.voice.speaker import Speaker
from scenarios.library import PublicScenario, SealedScenario, Vault
from scenarios.spelling import meant

T = TypeVar("T")
REPLIES_PER_JOB = 12
"""Replies of a batch that one job of a thread works out: few hand-overs, and still a pause for others between jobs."""
log = get_logger(__name__)


def choose_persona(scenario: PublicScenario, wanted: str | None, seed: int) -> str:
    """The persona's slug: the one asked for, else one of the scenario's by the seed."""
    if wanted is None:
        return scenario.personas[draw(seed, "persona", len(scenario.personas))]
    if wanted not in scenario.personas:
        message = "This scenario has no such persona." + meant(wanted, scenario.personas)
        problem = FieldProblem(("config", "persona_slug"), message)
        raise InvalidRequest(errors=[problem])
    return wanted


@dataclass(frozen=True, slots=True)
class PersonaInput:
    """The input of a persona: an agent turn, after the persona's own lines so far."""

    episode: EpisodeRow
    turn: AgentTurn
    earlier: Sequence[str]
    heard: Sequence[str] = ()
    """What the agent said in the turns before."""


class PersonaStage:
    """Plays the personas of all scenarios."""

    def __init__(
        self,
        vault: Vault,
        temperaments: Mapping[str, Temperament],
        reader: Reader,
        matcher: Matcher,
        threads: Executor,
        *,
        speaker: Speaker | None = None,
    ) -> None:
        self._vault = vault
        self._temperaments = temperaments
        self._reader = reader
        self._matcher = matcher
        self._threads = threads
        self._speaker = speaker
        """Who words what personas say; None leaves them the engine's lines."""
        self._simulators: dict[tuple[str, str, str, str], Simulator] = {}

    async def open(self, collection: str, scenario: str, persona: str, seed: int, split: str | None) -> Opening:
        """The persona's first line."""
        simulator = self._simulator(self._vault.drawn(collection, scenario, seed, split), persona)
        return await self._play(partial(simulator.open, seed))

    async def replies(
        self, all_said: Sequence[PersonaInput], then: Callable[[int, Reply], T]
    ) -> list[tuple[Reply, T] | LabsError]:
        """The answers in as many episodes, each with what `then` makes of it; each fails alone.

        A few go to a thread together, as where they are scored, and `then` is part of the job: handing one over costs
        as much as many a reply. `then` is given the number of the episode, and shall raise nothing.
        """
        acts = [self._act(said) for said in all_said]
        if self._speaker is None:
            jobs = [partial(_reply_and, act, partial(then, number)) for number, act in enumerate(acts)]
            return await self._done(jobs)
        replies = await asyncio.gather(*map(partial(self._voiced, self._speaker), all_said, await self._done(acts)))
        afterwards = [
            partial(_reply_and, partial(_same, reply), partial(then, number))
            for number, reply in enumerate(replies)
            if not isinstance(reply, LabsError)
        ]
        done = iter(await self._done(afterwards))
        return [reply if isinstance(reply, LabsError) else next(done) for reply in replies]

    async def _done(self, acts: Sequence[Callable[[], T]]) -> list[T | LabsError]:
        """Play each, a few to a job of a thread; return what came of it."""
        parts = [acts[start : start + REPLIES_PER_JOB] for start in range(0, len(acts), REPLIES_PER_JOB)]
        jobs = [self._play(partial(_each_alone, part)) for part in parts]
        results = [await jobs[0]] if len(jobs) == 1 else await asyncio.gather(*jobs)
        return [_failed(each) if isinstance(each, Exception) else each for each in chain.from_iterable(results)]

    def _act(self, said: PersonaInput) -> Callable[[], Reply]:
        """Return the work of a thread for one answer."""
        episode = said.episode
        simulator = self._simulator(self._sealed(episode), episode.persona_slug)
        state = PersonaState.from_json(episode.persona_state)
        return partial(simulator.reply, state, said.turn, episode.seed, said.earlier[-1] if said.earlier else "")

    async def _voiced(self, speaker: Speaker, said: PersonaInput, reply: Reply | LabsError) -> Reply | LabsError:
        """The reply in a language model's words, where the guard accepts them."""
        if isinstance(reply, LabsError):
            return reply
        episode = said.episode
        sealed = self._sealed(episode)
        character = character_of(sealed.case, self._temperaments[episode.persona_slug], sealed.card.name)
        guard = LineGuard(sealed.case, character, self._matcher)
        before = PersonaState.from_json(episode.persona_state)
        heard = [*said.heard, said.turn.text]
        direction = direction_of(sealed.case, tuple(before.said), reply, heard, said.earlier)

        async def check(text: str) -> Objection | None:
            if direction is None:
                return None
            return await self._play(partial(guard.objection, before, reply, direction, text))

        try:
            text = await speaker.line(character, direction, check, episode.lab_id)
        except LabsError as error:
            return error
        return reply if text is None else adopt(reply, text)

    def _sealed(self, episode: EpisodeRow) -> SealedScenario:
        """The variant that the episode began with, as whoever scores it finds it, too."""
        return self._vault.heard(episode.collection, episode.scenario, episode.opening)

    def _simulator(self, scenario: SealedScenario, persona: str) -> Simulator:
        slot = (scenario.collection, scenario.card.slug, scenario.variant, persona)
        if slot not in self._simulators:
            self._simulators[slot] = Simulator(scenario.case, self._temperaments[persona], self._reader)
        return self._simulators[slot]

    async def _play(self, act: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except Exception as error:  # noqa: BLE001 (a provider boundary)
            raise _failed(error) from None


def _reply_and(act: Callable[[], Reply], then: Callable[[Reply], T]) -> tuple[Reply, T]:
    """In a thread."""
    reply = act()
    return reply, then(reply)


def _same(reply: Reply) -> Reply:
    return reply


def _each_alone(acts: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """In a thread: what comes of each."""
    outcomes: list[T | Exception] = []
    for act in acts:
        try:
            outcomes.append(act())
        except Exception as error:  # noqa: BLE001 (a provider boundary)
            outcomes.append(error)
    return outcomes


def _failed(error: Exception) -> PersonaFailed:
    # The message may quote the case, so only the kind is kept.
    log.error("persona_failed", error=type(error).__name__)
    return PersonaFailed()
