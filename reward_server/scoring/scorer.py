"""The one path from transcripts to rewards; a single conversation is a batch of one.

A reward is a pure function of transcript, scenario and config: replay, judges, arithmetic, caps. It does not
depend on what else is in the batch. Computing runs in the scoring threads, a few transcripts at a time, so
that a large batch neither blocks the event loop nor starves other callers. Each request fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import structlog

from personas.matcher import Matcher
from personas.replay import replay
from personas.temperament import Temperament
from personas.understanding import not_yet_understood
from reward_server.errors import CollectionNotFound, JudgeFailed, LabsError, ScenarioNotFound
from reward_server.judges.base import Case, Outcome, Status, Verdict
from reward_server.judges.panel import Panel
from reward_server.scoring.aggregate import aggregate, considered
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.gates import closed_gates
from reward_server.scoring.scored import Moments, Scored, Unscored
from reward_server.scoring.transcript import Transcript
from reward_server.scoring.version import scoring_version
from scenarios.library import Library, SealedScenario
from scenarios.schema import Criterion, Rubric
from trainer_client.wire import Message, Role

TRANSCRIPTS_PER_JOB = 12
JOBS_PER_CALL = 2
UNDECIDABLE = "No judge of this server can decide what these weights ask for."

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One transcript to be scored under one scenario."""

    collection: str
    scenario: str
    transcript: Transcript
    config: RewardConfig = field(default_factory=RewardConfig)
    lab_id: str = "offline"
    """Who pays for what is asked about it."""


@runtime_checkable
class Prefetching(Protocol):
    """A matcher that can be told early what it will be asked."""

    def prefetch(self, texts: Sequence[str]) -> None:
        """Encode texts that will be compared soon."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A request whose computed verdicts are there and whose others are still to be asked for."""

    case: Case
    config: RewardConfig
    verdicts: Mapping[str, Verdict]
    questions: tuple[Criterion, ...]


class Scorer:
    """Scores transcripts; shared by every door."""

    def __init__(
        self,
        library: Library,
        matcher: Matcher,
        panel: Panel,
        threads: Executor,
        temperaments: Mapping[str, Temperament] | None = None,
    ) -> None:
        self._library = library
        self._matcher = matcher
        self._prefetching = matcher if isinstance(matcher, Prefetching) else None
        self._panel = panel
        self._threads = threads
        self._version = scoring_version(library, matcher, panel, temperaments or {})

    @property
    def scoring_version(self) -> str:
        """Names everything a reward depends on besides the request."""
        return self._version

    @property
    def judge(self) -> str:
        """What decides here, for the metadata of an evaluation."""
        return self._panel.name

    def read(self, collection: str, scenario: str, messages: Sequence[Message], agent_role: Role) -> Transcript:
        """The transcript of messages, its tool calls checked against the scenario's tools."""
        return Transcript.from_messages(messages, agent_role, self._open(collection, scenario).card.tools)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
        """One outcome per request, in order."""
        loop, turnstile = asyncio.get_running_loop(), asyncio.Semaphore(JOBS_PER_CALL)

        async def job(part: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
            async with turnstile:
                computed = await loop.run_in_executor(self._threads, self._compute, part)
            return await self._finish(computed)  # waiting for others holds up no thread

        starts = range(0, len(requests), TRANSCRIPTS_PER_JOB)
        done = await asyncio.gather(*(job(requests[start : start + TRANSCRIPTS_PER_JOB]) for start in starts))
        return [outcome for part in done for outcome in part]

    # --- in a scoring thread ----------------------------------------------------------------------

    def _compute(self, requests: Sequence[ScoreRequest]) -> list[_Open | Scored | Unscored]:
        self._prefetch(requests)
        return [self._attempt(request) for request in requests]

    def _prefetch(self, requests: Sequence[ScoreRequest]) -> None:
        """Have the sentences that are new encoded together, for all transcripts."""
        if self._prefetching is None:
            return
        sentences: list[str] = []
        for request in requests:
            with suppress(LabsError):  # which `_attempt` will meet again
                case = self._open(request.collection, request.scenario).case
                sentences += not_yet_understood(case, self._matcher, [turn.agent for turn in request.transcript.turns])
        if sentences:
            self._prefetching.prefetch(sentences)

    def _attempt(self, request: ScoreRequest) -> _Open | Scored | Unscored:
        try:
            return self._judge(request)
        except LabsError as error:
            return Unscored(error)
        except Exception as error:  # noqa: BLE001 (a request boundary: one transcript must not fail its batch)
            # Only the kind of error: its message may quote the rubric or the conversation.
            where = f"{request.collection}/{request.scenario}"
            log.error("score_failed", scenario=where, error=type(error).__name__)  # noqa: TRY400
            return Unscored(LabsError())

    def _judge(self, request: ScoreRequest) -> _Open | Scored:
        scenario = self._open(request.collection, request.scenario)
        transcript = request.transcript
        record = replay(
            scenario.case, transcript.opening, transcript.exchanges(), self._matcher, scenario.card.max_turns
        )
        case = Case(scenario, transcript, record, request.lab_id)
        criteria = considered(scenario.secrets.rubric, request.config)
        verdicts = self._panel.compute(case, criteria)
        questions = tuple(criterion for criterion in criteria if criterion.id not in verdicts)
        if questions:
            return _Open(case, request.config, verdicts, questions)
        return _total(case, request.config, verdicts)

    def _open(self, collection: str, scenario: str) -> SealedScenario:
        try:
            return self._library.vault.open(collection, scenario)
        except KeyError:
            known = collection in self._library.catalog.collections
            raise (ScenarioNotFound if known else CollectionNotFound) from None

    # --- back on the event loop -------------------------------------------------------------------

    async def _finish(self, outcomes: Sequence[_Open | Scored | Unscored]) -> list[Scored | Unscored]:
        waiting = [outcome for outcome in outcomes if isinstance(outcome, _Open)]
        answers = iter(await self._panel.ask([(each.case, each.questions) for each in waiting]) if waiting else [])
        return [_answered(each, next(answers)) if isinstance(each, _Open) else each for each in outcomes]


def _answered(waiting: _Open, answer: Outcome) -> Scored | Unscored:
    if isinstance(answer, LabsError):
        return Unscored(answer)
    try:
        return _total(waiting.case, waiting.config, {**waiting.verdicts, **{v.criterion_id: v for v in answer}})
    except LabsError as error:
        return Unscored(error)


def _total(case: Case, config: RewardConfig, verdicts: Mapping[str, Verdict]) -> Scored:
    rubric = case.scenario.secrets.rubric
    total = aggregate(rubric, verdicts, config)
    if total is None:
        raise JudgeFailed(UNDECIDABLE)
    gates = closed_gates(case.transcript, case.record, config.skip_safety_gate)
    reward = min(total.reward, *total.caps, *(gate.cap for gate in gates), 1.0)
    ordered = tuple(verdicts[criterion.id] for criterion in considered(rubric, config))
    return Scored(
        reward=round(reward, 4),
        scores={name: round(score, 4) for name, score in total.dimensions.items()},
        verdicts=ordered,
        caps=total.caps,
        gates=gates,
        abstained=tuple(v.criterion_id for v in ordered if v.status is Status.ABSTAINED),
        coverage=round(total.coverage, 4),
        moments=_moments(rubric, verdicts),
    )


def _moments(rubric: Rubric, verdicts: Mapping[str, Verdict]) -> dict[str, Moments]:
    """Per dimension the turns that the verdicts cite."""
    moments: dict[str, Moments] = {}
    for dimension in rubric.dimensions:
        gained: set[int] = set()
        lost: set[int] = set()
        for criterion in rubric.criteria:
            if criterion.dimension == dimension.name and criterion.id in verdicts:
                cited = {e.turn for e in verdicts[criterion.id].evidence if e.role == "agent"}
                (gained if criterion.points > 0 else lost).update(cited)
        moments[dimension.name] = Moments(tuple(sorted(gained)), tuple(sorted(lost)))
    return moments
