"""The one path from transcripts to rewards; a single conversation is a batch of one.

A reward is a pure function of transcript, scenario, config and judges: replay, verdicts, estimates, arithmetic,
caps. It does not depend on what else is in the batch. Each request fails alone.

Scoring has two halves. A scoring thread begins with a conversation (`begin`): it reads, replays and computes
(`computing`). The event loop finishes (`finish`): it waits for encoders, language models and judges of whole
conversations (`judge_round`). `score` does both, a few transcripts a job, so that a large batch neither blocks the
event loop nor starves other callers; whoever has a job of a scoring thread anyway begins there. A call is scored with
the conversation judges of its beginning; what is activated meanwhile is for the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

from personas.case.temperament import Temperament
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from personas.replay.replayer import Record
from reward_server.errors import InvalidRewardConfig, NotFound, ScenarioError
from reward_server.judges.panel import Panel
from reward_server.scoring.compose import composite_of
from reward_server.scoring.computing import ScoreComputer
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.disclosure import DisclosurePolicy
from reward_server.scoring.estimates import Judges, TakeSnapshot, missing_judge, refused, way_out
from reward_server.scoring.judge_round import JudgeRound
from reward_server.scoring.metering import ScoringMeter
from reward_server.scoring.pending import Begin, PendingScore, StartedScoring
from reward_server.scoring.request import Read, ScoreRequest
from reward_server.scoring.requested import RequestedScenarios
from reward_server.scoring.scored import Scored, Unscored, or_raise
from reward_server.scoring.versions import ScoringVersions
from reward_server.transcripts.transcript import SpokenMessage, Transcript
from reward_server.transcripts.weight import HEAVY, weight
from scenarios.library import Library, SealedScenario
from trainer_client.wire import Role

TRANSCRIPTS_PER_JOB = 12
JOBS_PER_CALL = 2
Thing = TypeVar("Thing")


def _nobody() -> Judges:
    return {}


class Scorer:
    """Scores transcripts; shared by every door."""

    def __init__(
        self,
        library: Library,
        matcher: Matcher,
        panel: Panel,
        threads: Executor,
        temperaments: Mapping[str, Temperament] | None = None,
        *,
        reader: Reader,
        disclosure: DisclosurePolicy,
        conversation_judges: TakeSnapshot = _nobody,
    ) -> None:
        self._library = library
        self._panel = panel
        self._threads = threads
        self._disclosure = disclosure
        self._scenarios = RequestedScenarios(library)
        self._versions = ScoringVersions(
            library,
            reader=reader,
            matcher=matcher,
            panel=panel,
            temperaments=temperaments or {},
            conversation_judges=conversation_judges,
        )
        self._computer = ScoreComputer(self._scenarios, self._versions, panel, matcher, reader)
        self._judges = JudgeRound(panel, threads)
        self.meter: ScoringMeter | None = None
        """Counts what is scored, where somebody wants to know."""
        self._require_judges()

    @property
    def scoring_version(self) -> str:
        """Names everything a reward depends on besides the request, as of now; `Scored` has that of its own."""
        return self._versions.snapshot().scoring_version

    def lend(self, given: SealedScenario) -> SealedScenario:
        """Have a scenario that is not in the library scored, while whoever asks keeps what this returns.

        Raises:
            InvalidRewardConfig: it needs a judge that is not here.
        """
        problem = self.problem(given)
        if problem:
            raise InvalidRewardConfig(f"The rubric {problem}")
        return self._library.vault.lend(given)

    def version_for(self, collection: str, scenario: str) -> str:
        """The version that rewards of this scenario rest on at this moment; of one that is gone, that of all others."""
        with suppress(NotFound):
            return self._versions.of(self._versions.snapshot(), self._scenarios.open(collection, scenario))
        return self.scoring_version

    @property
    def judge(self) -> str:
        """The names of the judges, for the metadata of an evaluation."""
        return self._panel.name

    def read(self, collection: str, scenario: str, messages: Sequence[SpokenMessage], agent_role: Role) -> Transcript:
        """The transcript of messages, its tool calls checked against the scenario's tools."""
        return Transcript.from_messages(messages, agent_role, self._scenarios.open(collection, scenario).card.tools)

    async def read_off_the_loop(
        self, collection: str, scenario: str, messages: Sequence[SpokenMessage], agent_role: Role
    ) -> Transcript:
        """The same on the event loop: a long one is read in a thread."""
        if sum(map(weight, messages)) < HEAVY:
            return self.read(collection, scenario, messages, agent_role)
        return await asyncio.to_thread(self.read, collection, scenario, messages, agent_role)

    def check(self, config: RewardConfig) -> None:
        """Refuse, before any work, a config that names a judge which is not here.

        Raises:
            InvalidRewardConfig: of a composite; what a scenario names was looked at when the server started.
        """
        judges = self._versions.snapshot().judges
        missing = config.composite and missing_judge(config.composite, judges)
        if missing:
            raise refused(missing, judges)

    def problem(self, scenario: SealedScenario) -> str | None:
        """The thing this server lacks to score a scenario."""
        secrets = scenario.secrets
        missing = secrets.reward and missing_judge(composite_of(secrets.reward), self._versions.snapshot().judges)
        problem = f"needs the judge `{missing}`, which this server lacks. {way_out(missing)}" if missing else None
        return problem or self._panel.plugin_problem(secrets.rubric.criteria)

    def _require_judges(self) -> None:
        """A scenario that asks for judges which are not here is found out at start, not by its first lab."""
        for collection, scenario in self._library.vault.names():
            problem = self.problem(self._library.vault.open(collection, scenario))
            if problem:
                raise ScenarioError(f"{collection}/{scenario} {problem}")

    # --- score ------------------------------------------------------------------------------------

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
        """One outcome per request, in order."""
        started, begin, turnstile = time.perf_counter(), self.begin(), asyncio.Semaphore(JOBS_PER_CALL)

        async def begun(part: Sequence[ScoreRequest]) -> list[StartedScoring]:
            async with turnstile:
                return await asyncio.get_running_loop().run_in_executor(self._threads, _begin_all, begin, part)

        parts = [begun(part) for part in _parts(requests)]
        outcomes = [await parts[0]] if len(parts) == 1 else await asyncio.gather(*parts)
        return await self._ended(list(chain.from_iterable(outcomes)), started)

    def begin(self) -> Begin:
        """Return the function with which a scoring thread begins a conversation, for `finish`; it raises nothing.

        The conversation judges are those of this moment.
        """
        return partial(self._computer.begun, self._versions.snapshot())

    async def finish(self, begun: Sequence[StartedScoring]) -> list[Scored | Unscored]:
        """One outcome per conversation, in order; all of them were begun with by what one `begin` gave."""
        return await self._ended(begun, time.perf_counter() - sum(start.seconds for start in begun))

    async def _ended(self, begun: Sequence[StartedScoring], started: float) -> list[Scored | Unscored]:
        """Outcomes as they may be told; what is not told at all is not scored either."""
        requests = [start.request for start in begun]
        refusals = await self._disclosure.refused(requests)
        allowed = [start for place, start in enumerate(begun) if place not in refusals]
        outcomes = await self._outcomes(allowed) if allowed else []
        if self.meter is not None and allowed:
            self.meter.count([_place(start.request) for start in allowed], outcomes, time.perf_counter() - started)
        scored = iter(outcomes)
        whole = [refusals[place] if place in refusals else next(scored) for place in range(len(begun))]
        return list(map(self._disclosure.told, requests, whole))

    async def _outcomes(self, begun: Sequence[StartedScoring]) -> list[Scored | Unscored]:
        waiting, turnstile = [start for start in begun if start.texts], asyncio.Semaphore(JOBS_PER_CALL)
        parts = await asyncio.gather(*(self._computed(part, turnstile) for part in _parts(waiting))) if waiting else ()
        computed = chain.from_iterable(parts)
        outcomes = [next(computed) if start.outcome is None else start.outcome for start in begun]
        # All of a call were begun with the same judges.
        return await self._judges.hear(outcomes, begun[0].snapshot)

    async def _computed(
        self, begun: Sequence[StartedScoring], turnstile: asyncio.Semaphore
    ) -> list[PendingScore | Scored | Unscored]:
        """Score conversations whose texts were missing."""
        # Awaited, so that the texts of all callers share batches and no scoring thread waits for them.
        await self._computer.prefetched(list(dict.fromkeys(text for start in begun for text in start.texts)))
        async with turnstile:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._computer.compute, begun)

    async def read_ahead(self, reads: Sequence[Read]) -> None:
        """Have the texts that are new to the reader embedded together, before anybody reads them."""
        if self._computer.prefetches and reads:
            work = asyncio.get_running_loop().run_in_executor
            fresh = await work(self._threads, self._computer.fresh_texts_of, reads, self._versions.snapshot())
            await self._computer.prefetched(fresh)

    # --- explain ----------------------------------------------------------------------------------

    async def replayed(self, request: ScoreRequest) -> Record:
        """Replay a transcript: what the persona understood, and what the agent earned: the reasons, scored or not."""
        await self.read_ahead([lambda: request])
        work = asyncio.get_running_loop().run_in_executor
        scenario = self._scenarios.sealed(request)
        record, _ = await work(self._threads, self._computer.replayed, scenario, request.transcript)
        return record

    async def explained(self, request: ScoreRequest) -> tuple[Scored, Record]:
        """The outcome with what it rests on, for people to read; counted as no reward.

        Raises:
            LabsError: as scoring does.
        """
        work = asyncio.get_running_loop().run_in_executor
        begun = await work(self._threads, self.begin(), lambda: request)
        [outcome] = await self._outcomes([begun])
        return or_raise(outcome), await self.replayed(request)


def _parts(things: Sequence[Thing]) -> list[Sequence[Thing]]:
    """As many as one job of a scoring thread takes, each."""
    return [things[start : start + TRANSCRIPTS_PER_JOB] for start in range(0, len(things), TRANSCRIPTS_PER_JOB)]


def _begin_all(begin: Begin, requests: Sequence[ScoreRequest]) -> list[StartedScoring]:
    return [begin(partial(_given, request)) for request in requests]


def _given(request: ScoreRequest) -> ScoreRequest:
    """Nothing is left to read."""
    return request


def _place(request: ScoreRequest | None) -> tuple[str, str] | None:
    return None if request is None else (request.collection, request.scenario)
