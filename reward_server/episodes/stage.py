"""Where personas are played: opens and continues them off the event loop.

A simulator is pure and may run a model, so it runs in the scoring threads. Whatever it raises is a
failure of the persona: the turn is not recorded, and nothing of the case is in the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from personas.heard import AgentTurn
from personas.matcher import Matcher
from personas.phrasing import Objection, Phrasing, adopt
from personas.reading.reader import Reader
from personas.simulator import Opening, Reply, Simulator
from personas.state import PersonaState
from personas.temperament import Temperament
from personas.voice import draw
from reward_server.episodes.wording import Wording
from reward_server.errors import FieldProblem, InvalidRequest, PersonaFailed
from reward_server.store.records import EpisodeRow
from reward_server.telemetry.logs import get_logger
from scenarios.library import PublicScenario, Vault
from scenarios.spelling import meant

T = TypeVar("T")
log = get_logger(__name__)


def choose_persona(scenario: PublicScenario, wanted: str | None, seed: int) -> str:
    """The persona's slug: the one asked for, else one of the scenario's by the seed."""
    if wanted is None:
        return scenario.personas[draw(seed, "persona", len(scenario.personas))]
    if wanted not in scenario.personas:
        told = "This scenario has no such persona." + meant(wanted, scenario.personas)
        problem = FieldProblem(("config", "persona_slug"), told)
        raise InvalidRequest(errors=[problem])
    return wanted


class Stage:
    """Plays the personas of all scenarios."""

    def __init__(
        self,
        vault: Vault,
        temperaments: Mapping[str, Temperament],
        reader: Reader,
        matcher: Matcher,
        threads: Executor,
        *,
        wording: Wording | None = None,
    ) -> None:
        self._vault = vault
        self._temperaments = temperaments
        self._reader = reader
        self._matcher = matcher
        self._threads = threads
        self._wording = wording
        """Who finds other words for what personas say; None leaves them their own."""
        self._simulators: dict[tuple[str, str, str], Simulator] = {}

    async def open(self, collection: str, scenario: str, persona: str, seed: int) -> Opening:
        """The persona's first line."""
        simulator = self._simulator(collection, scenario, persona)
        return await self._play(partial(simulator.open, seed))

    async def reply(self, episode: EpisodeRow, turn: AgentTurn, earlier: Sequence[str]) -> Reply:
        """The persona's answer to an agent turn; `earlier` is what it said before."""
        simulator = self._simulator(episode.collection, episode.scenario, episode.persona_slug)
        state = PersonaState.from_json(episode.persona_state)
        line = earlier[-1] if earlier else ""
        reply = await self._play(lambda: simulator.reply(state, turn, episode.seed, line))
        return reply if self._wording is None else await self._worded(self._wording, episode, turn, reply, earlier)

    async def _worded(
        self, wording: Wording, episode: EpisodeRow, turn: AgentTurn, reply: Reply, earlier: Sequence[str]
    ) -> Reply:
        """The reply in a language model's words, where they say the same."""
        case = self._vault.open(episode.collection, episode.scenario).case
        phrasing = Phrasing(case, self._temperaments[episode.persona_slug], self._matcher)
        before = PersonaState.from_json(episode.persona_state)
        cue = phrasing.cue(reply, turn.text, earlier)

        async def check(text: str) -> Objection | None:
            return None if cue is None else await self._play(partial(phrasing.objection, before, reply, cue, text))

        words = await wording.words_for(cue, check, episode.lab_id)
        return reply if words is None else adopt(reply, words)

    def _simulator(self, collection: str, scenario: str, persona: str) -> Simulator:
        slot = (collection, scenario, persona)
        if slot not in self._simulators:
            case = self._vault.open(collection, scenario).case
            self._simulators[slot] = Simulator(case, self._temperaments[persona], self._reader)
        return self._simulators[slot]

    async def _play(self, act: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except Exception as error:  # noqa: BLE001 (a provider boundary)
            # The message may quote the case, so only the kind is kept.
            log.error("persona_failed", error=type(error).__name__)  # noqa: TRY400
            raise PersonaFailed from None
