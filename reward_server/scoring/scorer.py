"""The one path from transcripts to rewards; a single conversation is a batch of one.

A reward is a pure function of transcript, scenario, config and judges: replay, verdicts, estimates, arithmetic,
caps. It does not depend on what else is in the batch. Each request fails alone.

Scoring has two halves. A scoring thread begins with a conversation (`begin`): it reads, replays and computes. The event
loop finishes (`finish`): it waits for encoders, language models and judges of whole conversations. `score` does both,
a few transcripts a job, so that a large batch neither blocks the event loop nor starves other callers; whoever has a
job of a scoring thread anyway begins there. A call is scored with the conversation judges of its beginning; what is
activated meanwhile is for the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import structlog

from personas.case.compiled import CompiledCase
from personas.case.temperament import Temperament
from personas.hearing.heard import AgentTurn
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader, Turn
from personas.replay.replayer import ConductCounts, Exchange, Record, replay, turns_of
from reward_server.errors import (
    CollectionNotFound,
    InvalidRewardConfig,
    JudgeFailed,
    LabsError,
    ScenarioError,
    ScenarioNotFound,
)
from reward_server.judges.base import Case, Outcome, Verdict, VerdictStatus
from reward_server.judges.cascade import OpenQuestion
from reward_server.judges.estimate import Estimate
from reward_server.judges.panel import Panel
from reward_server.scoring.aggregate import Aggregate, aggregate, considered, fired_caps
from reward_server.scoring.compose import (
    RUBRIC,
    RUBRIC_ALONE,
    PartValue,
    ScoringComposite,
    combine,
    composite_of,
    lower_bound,
)
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.echoes import without_echoes
from reward_server.scoring.estimates import (
    Judges,
    JudgeSnapshot,
    TakeSnapshot,
    estimates_of,
    heard_as,
    missing_judge,
    prepared,
    reads_record,
    refused,
    way_out,
)
from reward_server.scoring.gates import Gate, closed_gates
from reward_server.scoring.metering import ScoringMeter
from reward_server.scoring.scored import FAILURE_CRITERION, Scored, Unscored, moments_of, or_raise
from reward_server.scoring.variant import heard_in
from reward_server.scoring.version import scoring_version
from reward_server.transcripts.transcript import SpokenMessage, Transcript
from reward_server.transcripts.weight import HEAVY, weight
from scenarios.library import Library, SealedScenario
from scenarios.rubric_file import GIVEN
from scenarios.schema import Criterion, Rubric
from trainer_client.wire import Role

TRANSCRIPTS_PER_JOB = 12
CASES_PER_ESTIMATE = 128
"""So many cases a conversation judge is given at once: enough to fill any batch, few enough to let others in."""
JOBS_PER_CALL = 2
UNDECIDABLE = "No judge of this server can decide what these weights ask for."
NEEDS_A_MODEL = "Such criteria need a language model or a decision model: docs/providers.md"
LENT_VERSIONS = 4096
UNCERTAINTY_UNKNOWN = "reward_config.risk_aversion: no judge that made this reward knows its uncertainty."

log = structlog.get_logger(__name__)
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One transcript to be scored under one scenario."""

    collection: str
    scenario: str
    transcript: Transcript
    config: RewardConfig = field(default_factory=RewardConfig)
    lab_id: str = "offline"
    """Who pays for what is asked about it."""
    lent: SealedScenario | None = field(default=None, repr=False)
    """Of one that is not in the library: kept until it is scored, since the vault only lends it."""


@runtime_checkable
class Prefetching(Protocol):
    """A reader that can be told early what it will read."""

    def texts(self, case: CompiledCase, turns: Sequence[Turn]) -> list[str]:
        """The texts that reading the turns will embed, known turns left out."""

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Embed texts that will be read soon."""


class DisclosurePolicy(Protocol):
    """Decides what whoever asks may be told (`scoring.telling`)."""

    async def refused(self, requests: Sequence[ScoreRequest | None]) -> dict[int, Unscored]:
        """Those of the requests, by their place, that get no reward."""

    def told(self, request: ScoreRequest | None, outcome: Scored | Unscored) -> Scored | Unscored:
        """The outcome as it may be told."""


@dataclass(frozen=True, slots=True)
class _PendingScore:
    """A request whose computed verdicts are there and whose others are still to be asked for."""

    case: Case
    config: RewardConfig
    composite: ScoringComposite
    criteria: tuple[Criterion, ...]
    gates: tuple[Gate, ...]
    verdicts: Mapping[str, Verdict]
    questions: tuple[OpenQuestion, ...]
    scoring_version: str

    @property
    def waits(self) -> bool:
        """True if anybody is still to be heard."""
        return bool(self.questions) or self.composite.judges != (RUBRIC,)


Read: TypeAlias = Callable[[], ScoreRequest]
"""Gives a request in a scoring thread, where its conversation may be read; what it raises is the outcome."""


@dataclass(frozen=True, slots=True, repr=False)
class StartedScoring:
    """A conversation that a scoring thread has begun with, for `finish`."""

    request: ScoreRequest | None
    """None where it could not be read."""
    snapshot: JudgeSnapshot
    texts: Sequence[str]
    """What has to be embedded before anything can be computed."""
    found: _PendingScore | Scored | Unscored | None
    """What came of it; None where texts are missing."""
    seconds: float
    """What beginning took."""


Begin: TypeAlias = Callable[[Read], StartedScoring]


def _nobody() -> Judges:
    return {}


NOT_REPLAYED = Record((), {}, {}, {}, ConductCounts(), 0.0)
"""The record of a case that nobody reads the record of."""


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
        conversation_judges: TakeSnapshot = _nobody,
    ) -> None:
        self._library = library
        self._matcher = matcher
        self._reader = reader
        self._prefetching = reader if isinstance(reader, Prefetching) else None
        self._panel = panel
        self._threads = threads
        self._temperaments = temperaments or {}
        self._take_snapshot = conversation_judges
        self.meter: ScoringMeter | None = None
        """Counts what is scored, where somebody wants to know."""
        self.telling: DisclosurePolicy | None = None
        """Decides what a key may be told, where there are keys."""
        self._lent_versions: dict[tuple[str, str], str] = {}
        """Scoring versions of lent scenarios, by their digest and the version of all others."""
        self._versions_seen: tuple[Mapping[str, str] | None, str] = None, ""
        """Versions of the conversation judges last seen, and the scoring version they make: hashing takes a while."""
        self._require_judges()

    @property
    def scoring_version(self) -> str:
        """Names everything a reward depends on besides the request, as of now; `Scored` has that of its own."""
        return self._snapshot().scoring_version

    def lend(self, given: SealedScenario) -> SealedScenario:
        """Have a scenario that is not in the library scored, while whoever asks keeps what this returns.

        Raises:
            InvalidRewardConfig: it needs a judge that is not here.
        """
        problem = self._problem(given)
        if problem:
            raise InvalidRewardConfig(f"The rubric {problem}")
        return self._library.vault.lend(given)

    def version_for(self, collection: str, scenario: str) -> str:
        """The version that rewards of this scenario rest on at this moment."""
        return self._version(self._snapshot(), self._open(collection, scenario))

    @property
    def judge(self) -> str:
        """The names of the judges, for the metadata of an evaluation."""
        return self._panel.name

    def read(self, collection: str, scenario: str, messages: Sequence[SpokenMessage], agent_role: Role) -> Transcript:
        """The transcript of messages, its tool calls checked against the scenario's tools."""
        return Transcript.from_messages(messages, agent_role, self._open(collection, scenario).card.tools)

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
        judges = self._snapshot().judges
        missing = config.composite and missing_judge(config.composite, judges)
        if missing:
            raise refused(missing, judges)

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
        return partial(self._begun, self._snapshot())

    async def finish(self, begun: Sequence[StartedScoring]) -> list[Scored | Unscored]:
        """One outcome per conversation, in order; all of them were begun with by what one `begin` gave."""
        return await self._ended(begun, time.perf_counter() - sum(each.seconds for each in begun))

    async def _ended(self, begun: Sequence[StartedScoring], started: float) -> list[Scored | Unscored]:
        requests = [each.request for each in begun]
        refused = {} if self.telling is None else await self.telling.refused(requests)
        allowed = [each for place, each in enumerate(begun) if place not in refused]
        outcomes = await self._outcomes(allowed) if allowed else []
        if self.meter is not None and allowed:
            places = [
                None if each is None else (each.collection, each.scenario) for each in (b.request for b in allowed)
            ]
            self.meter.count(places, outcomes, time.perf_counter() - started)
        scored = iter(outcomes)
        whole = [refused[place] if place in refused else next(scored) for place in range(len(begun))]
        return whole if self.telling is None else list(map(self.telling.told, requests, whole))

    async def _outcomes(self, begun: Sequence[StartedScoring]) -> list[Scored | Unscored]:
        waiting, turnstile = [each for each in begun if each.texts], asyncio.Semaphore(JOBS_PER_CALL)
        parts = await asyncio.gather(*(self._computed(part, turnstile) for part in _parts(waiting))) if waiting else ()
        computed = chain.from_iterable(parts)
        return await self._asked([next(computed) if each.found is None else each.found for each in begun], begun[0])

    async def _computed(
        self, begun: Sequence[StartedScoring], turnstile: asyncio.Semaphore
    ) -> list[_PendingScore | Scored | Unscored]:
        """Score conversations whose texts were missing."""
        if self._prefetching is not None:
            # Awaited, so that the texts of all callers share batches and no scoring thread waits for them.
            await self._prefetching.prefetched(list(dict.fromkeys(text for each in begun for text in each.texts)))
        async with turnstile:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._compute, begun)

    async def read_ahead(self, reads: Sequence[Read]) -> None:
        """Have the texts that are new to the reader embedded together, before anybody reads them."""
        if self._prefetching is not None and reads:
            work = asyncio.get_running_loop().run_in_executor
            fresh = await work(self._threads, self._fresh_texts_of, reads, self._snapshot())
            if fresh:
                await self._prefetching.prefetched(fresh)

    async def replayed(self, request: ScoreRequest) -> Record:
        """Replay a transcript: what the persona understood, and what the agent earned: the reasons, scored or not."""
        await self.read_ahead([lambda: request])
        work = asyncio.get_running_loop().run_in_executor
        record, _ = await work(self._threads, self._replayed, self._sealed(request), request.transcript)
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

    def _snapshot(self) -> JudgeSnapshot:
        """The conversation judges of this moment, and the version they make."""
        judges = self._take_snapshot()
        versions = {name: judge.version for name, judge in judges.items()}
        if versions != self._versions_seen[0]:
            self._versions_seen = versions, self._hashed(versions)
        return JudgeSnapshot(judges, self._versions_seen[1])

    def _version(self, snapshot: JudgeSnapshot, scenario: SealedScenario) -> str:
        """That of a call, or one that speaks of a lent scenario instead of the library."""
        if not scenario.digest:
            return snapshot.scoring_version
        key = scenario.digest, snapshot.scoring_version
        known = self._lent_versions.get(key)
        if known is None:
            versions = {name: judge.version for name, judge in snapshot.judges.items()}
            known = self._hashed(versions, scenario.digest)
            if len(self._lent_versions) >= LENT_VERSIONS:
                self._lent_versions = {}
            self._lent_versions[key] = known
        return known

    def _hashed(self, versions: Mapping[str, str], given: str = "") -> str:
        return scoring_version(
            self._library,
            self._reader,
            self._matcher,
            self._panel,
            self._temperaments,
            conversation_judges=versions,
            given=given,
        )

    def _require_judges(self) -> None:
        """A scenario that asks for judges which are not here is found out at start, not by its first lab."""
        for collection, scenario in self._library.vault.names():
            problem = self._problem(self._library.vault.open(collection, scenario))
            if problem:
                raise ScenarioError(f"{collection}/{scenario} {problem}")

    def _problem(self, scenario: SealedScenario) -> str | None:
        """The thing this server lacks to score a scenario."""
        secrets = scenario.secrets
        missing = secrets.reward and missing_judge(composite_of(secrets.reward), self._snapshot().judges)
        problem = f"needs the judge `{missing}`, which this server lacks. {way_out(missing)}" if missing else None
        return problem or self._panel.plugin_problem(secrets.rubric.criteria)

    # --- in a scoring thread ----------------------------------------------------------------------

    def _begun(self, snapshot: JudgeSnapshot, read: Read) -> StartedScoring:
        """Begin with a conversation: where texts have to be embedded first, that is all; else it is done at once."""
        started = time.perf_counter()
        request: ScoreRequest | None = None
        texts: Sequence[str] = ()
        found: _PendingScore | Scored | Unscored | None
        try:
            request = read()
            texts = self._fresh_texts(request, snapshot)
            found = None if texts else self._judge(request, snapshot)
        except Exception as error:  # noqa: BLE001 (a request boundary: one transcript must not fail its batch)
            found = _failed(error, request)
        return StartedScoring(request, snapshot, texts, found, time.perf_counter() - started)

    def _compute(self, begun: Sequence[StartedScoring]) -> list[_PendingScore | Scored | Unscored]:
        return [self._attempt(each.request, each.snapshot) for each in begun if each.request is not None]

    def _attempt(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> _PendingScore | Scored | Unscored:
        try:
            return self._judge(request, snapshot)
        except Exception as error:  # noqa: BLE001 (a request boundary: one transcript must not fail its batch)
            return _failed(error, request)

    def _fresh_texts(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> Sequence[str]:
        """The texts that reading the transcript will embed."""
        if self._prefetching is None or not self._is_replayed(request, snapshot.judges):
            return ()
        transcript = request.transcript
        return self._prefetching.texts(self._sealed(request).case, turns_of(transcript.opening, transcript.exchanges()))

    def _fresh_texts_of(self, reads: Sequence[Read], snapshot: JudgeSnapshot) -> list[str]:
        """The same for several; what is wrong with one is met again when it is scored."""
        texts: dict[str, None] = {}
        for read in reads:
            with suppress(Exception):
                texts |= dict.fromkeys(self._fresh_texts(read(), snapshot))
        return list(texts)

    def _judge(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> _PendingScore | Scored:
        scenario, transcript, config = self._sealed(request), request.transcript, request.config
        composite = self._composite(request)
        missing = missing_judge(composite, snapshot.judges)
        if missing:
            # The scenario's own was there at start: that it has gone since is no mistake of the caller's.
            raise refused(missing, snapshot.judges) if config.composite else JudgeFailed()
        record, recited = NOT_REPLAYED, 0
        if self._is_replayed(request, snapshot.judges):
            record, recited = self._replayed(scenario, transcript)
        case = Case(scenario, transcript, record, request.lab_id)
        criteria = _wanted(scenario.secrets.rubric, config, composite)
        judged = self._panel.compute(case, criteria)
        gates = closed_gates(
            transcript,
            record,
            config.skip_safety_gate,
            recited=recited,
            criteria=criteria,
            verdicts=judged.verdicts,
            has_persona=scenario.has_persona,
        )
        version = self._version(snapshot, scenario)
        half = _PendingScore(case, config, composite, criteria, gates, judged.verdicts, judged.open, version)
        return half if half.waits else _total(half, judged.verdicts, {}, snapshot)

    def _replayed(self, scenario: SealedScenario, transcript: Transcript) -> tuple[Record, int]:
        """The record, and how many sentences of the rubric were recited in it: nobody hears those."""
        exchanges = transcript.exchanges()
        cleared = [without_echoes(scenario.secrets.rubric, exchange.agent.text) for exchange in exchanges]
        hearings = [
            Exchange(AgentTurn(clear.text, exchange.agent.tools), exchange.persona)
            for exchange, clear in zip(exchanges, cleared, strict=True)
        ]
        record = replay(
            scenario.case, transcript.opening, hearings, self._reader, self._matcher, scenario.card.max_turns
        )
        return record, sum(clear.recited for clear in cleared)

    def _composite(self, request: ScoreRequest) -> ScoringComposite:
        """The composition of the reward: a request's word wins over the scenario's."""
        if request.config.composite is not None:
            return request.config.composite
        reward = self._sealed(request).secrets.reward
        return RUBRIC_ALONE if reward is None else composite_of(reward)

    def _is_replayed(self, request: ScoreRequest, judges: Judges) -> bool:
        """True if anything that is asked for rests on the replay."""
        if not request.config.skip_safety_gate:
            return True
        with suppress(LabsError):  # which `_attempt` will meet again
            conversation_judges = [judges.get(name) for name in self._composite(request).judges]
            return any(judge is None or reads_record(judge) for judge in conversation_judges)
        return False

    def _sealed(self, request: ScoreRequest) -> SealedScenario:
        """The variant that the conversation is about."""
        self._open(request.collection, request.scenario)
        return heard_in(self._library.vault, request.collection, request.scenario, request.transcript)

    def _open(self, collection: str, scenario: str) -> SealedScenario:
        try:
            return self._library.vault.open(collection, scenario)
        except KeyError:
            known = collection in self._library.catalog.collections
            raise (ScenarioNotFound if known else CollectionNotFound) from None

    # --- back on the event loop -------------------------------------------------------------------

    async def _asked(
        self, outcomes: Sequence[_PendingScore | Scored | Unscored], begun: StartedScoring
    ) -> list[Scored | Unscored]:
        """The outcomes once everybody was heard; `begun` is one of them, for the judges that they share."""
        snapshot = begun.snapshot
        waiting = [outcome for outcome in outcomes if isinstance(outcome, _PendingScore)]
        if not waiting:
            return [outcome for outcome in outcomes if not isinstance(outcome, _PendingScore)]
        answers, judge_estimates = await asyncio.gather(
            self._panel.ask([(each.case, each.questions) for each in waiting]),
            asyncio.gather(*(self._estimates(name, waiting, snapshot.judges) for name in snapshot.judges)),
        )
        estimates = dict(zip(snapshot.judges, judge_estimates, strict=True))
        finished = iter(
            _finished(each, answer, {name: judge_outcomes[i] for name, judge_outcomes in estimates.items()}, snapshot)
            for i, (each, answer) in enumerate(zip(waiting, answers, strict=True))
        )
        return [next(finished) if isinstance(each, _PendingScore) else each for each in outcomes]

    async def _estimates(
        self, name: str, waiting: Sequence[_PendingScore], judges: Judges
    ) -> list[Estimate | LabsError | None]:
        """Ask a judge about each case that wants to hear it; None for the others."""
        asking = [i for i, each in enumerate(waiting) if name in each.composite.judges]
        cases = [waiting[i].case for i in asking]
        parts = [cases[start : start + CASES_PER_ESTIMATE] for start in range(0, len(cases), CASES_PER_ESTIMATE)]
        loop, estimates = asyncio.get_running_loop(), []
        for part in parts:
            await prepared(judges[name], part)
            estimates += await loop.run_in_executor(self._threads, estimates_of, judges[name], part)
        by_case = dict(zip(asking, estimates, strict=True))
        return [by_case.get(i) for i in range(len(waiting))]


def _parts(things: Sequence[Thing]) -> list[Sequence[Thing]]:
    """As many as one job of a scoring thread takes, each."""
    return [things[start : start + TRANSCRIPTS_PER_JOB] for start in range(0, len(things), TRANSCRIPTS_PER_JOB)]


def _begin_all(begin: Begin, requests: Sequence[ScoreRequest]) -> list[StartedScoring]:
    return [begin(partial(_given, request)) for request in requests]


def _given(request: ScoreRequest) -> ScoreRequest:
    """Nothing is left to read."""
    return request


def _failed(error: Exception, request: ScoreRequest | None) -> Unscored:
    if isinstance(error, LabsError):
        return Unscored(error)
    # Only the kind of error: its message may quote the rubric or the conversation.
    where = None if request is None else f"{request.collection}/{request.scenario}"
    log.error("score_failed", scenario=where, error=type(error).__name__)
    return Unscored(LabsError())


def _wanted(rubric: Rubric, config: RewardConfig, composite: ScoringComposite) -> tuple[Criterion, ...]:
    """The criteria to be decided: all that run, or those that cap, or none where only others are heard."""
    if RUBRIC in composite.judges:
        return considered(rubric, config)
    return () if config.skip_safety_gate else tuple(c for c in considered(rubric, config) if c.cap is not None)


def _finished(
    half: _PendingScore, answer: Outcome, estimates: Mapping[str, Estimate | LabsError | None], snapshot: JudgeSnapshot
) -> Scored | Unscored:
    if isinstance(answer, LabsError):
        return Unscored(answer)
    known: dict[str, Estimate] = {}
    for name, estimate in estimates.items():
        if isinstance(estimate, LabsError):
            return Unscored(estimate)
        if estimate is not None:
            known[name] = estimate
    try:
        return _total(half, {**half.verdicts, **{v.criterion_id: v for v in answer}}, known, snapshot)
    except LabsError as error:
        return Unscored(error)


def _total(
    half: _PendingScore, verdicts: Mapping[str, Verdict], estimates: Mapping[str, Estimate], snapshot: JudgeSnapshot
) -> Scored:
    rubric = half.case.scenario.secrets.rubric
    total = _rubric_total(half, verdicts)
    values = {RUBRIC: PartValue(total.reward, total.uncertainty)} if RUBRIC in half.composite.judges else {}
    values |= {name: _heard(estimate, gated=bool(half.gates)) for name, estimate in estimates.items()}
    whole = combine(half.composite, values)
    value = _cautious(half, values) if half.config.risk_aversion else whole.value
    limits = [*((FAILURE_CRITERION, cap) for cap in total.caps), *((gate.name, gate.cap) for gate in half.gates)]
    reward = min(value, *(cap for _, cap in limits), 1.0)
    ordered = tuple(verdicts[criterion.id] for criterion in half.criteria)
    return Scored(
        reward=round(reward, 4),
        scores={name: round(score, 4) for name, score in total.dimensions.items()},
        verdicts=ordered,
        caps=total.caps,
        gates=half.gates,
        capped_by=tuple(dict.fromkeys(kind for kind, cap in limits if cap < value)),
        abstained=tuple(v.criterion_id for v in ordered if v.status is VerdictStatus.ABSTAINED),
        coverage=round(total.coverage, 4),
        moments=moments_of(rubric, verdicts),
        scoring_version=half.scoring_version,
        uncertainty=None if whole.std is None else round(whole.std, 4),
        parts={} if half.composite.judges == (RUBRIC,) else {name: round(v.value, 4) for name, v in values.items()},
        judges=heard_as(half.composite, snapshot.judges),
    )


def _heard(estimate: Estimate, *, gated: bool) -> PartValue:
    """A judge of the whole conversation; behind a closed gate its estimate is worth nothing, however well it meant.

    A cap alone would let an attack lift a conversation of which such a judge thinks less than the cap.
    """
    return PartValue(0.0 if gated else estimate.value, estimate.epistemic)


def _cautious(half: _PendingScore, values: Mapping[str, PartValue]) -> float:
    """The lower confidence bound that was asked for, if some judge of the reward knows its doubt.

    Where that judge does not move this reward (a gate of the composite is closed, say), there is nothing to cut by.
    Whether a request is refused shall not hang on what was said in the conversation.
    """
    if half.gates:
        # Estimates count for nothing here, and so do their doubts: an attack would buy the std back.
        return 0.0
    if all(value.std is None for value in values.values()):
        raise InvalidRewardConfig(UNCERTAINTY_UNKNOWN)
    return lower_bound(half.composite, values, half.config.risk_aversion)


def _rubric_total(half: _PendingScore, verdicts: Mapping[str, Verdict]) -> Aggregate:
    """The rubric's part; only its caps where the composite is made of others."""
    if RUBRIC not in half.composite.judges:
        return Aggregate(0.0, {}, fired_caps(half.criteria, verdicts), 1.0)
    total = aggregate(half.case.scenario.secrets.rubric, verdicts, half.config)
    if total is None:
        raise JudgeFailed(_undecidable(half, verdicts))
    return total


def _undecidable(half: _PendingScore, verdicts: Mapping[str, Verdict]) -> str:
    """The reason why there is no reward; who brought the rubric is told of which criteria, too."""
    if half.case.scenario.collection != GIVEN:
        return UNDECIDABLE
    names = [criterion.id for criterion in half.criteria if verdicts[criterion.id].status is VerdictStatus.ABSTAINED]
    listed = ", ".join(f"`{name}`" for name in names)
    return f"No judge here can decide {listed}, and too little of the rubric is left. {NEEDS_A_MODEL}"
