"""Counts what scoring did and could not do: rewards, time, conversations without one, criteria that nobody decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward_server.errors import JudgeFailed
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Begun, Scorer, ScoreRequest
from reward_server.scoring.telling import Telling
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.transcript import Spoken, Transcript
from reward_server.transcripts.weight import HEAVY, weight
from scenarios.library import Vault
from trainer_client.wire import Role


@dataclass(frozen=True, slots=True)
class ReadNow:
    """A conversation whose reading is part of a job of a scoring thread, and how it is to be scored."""

    collection: str
    scenario: str
    messages: Sequence[Spoken]
    agent_role: Role
    config: RewardConfig
    lab_id: str


@dataclass(frozen=True, slots=True)
class MeteredBegun:
    """What was begun with, and the seconds that went into it."""

    begun: Begun
    seconds: float


class MeteredScorer:
    """The scorer, counted. Labels are codes and kinds of checks, never a criterion."""

    def __init__(self, scorer: Scorer, vault: Vault, metrics: Metrics, telling: Telling) -> None:
        self._scorer = scorer
        self._telling = telling
        self._vault = vault
        self._metrics = metrics

    @property
    def scoring_version(self) -> str:
        """Names everything a reward depends on besides the request, as of now; `Scored` has that of its own."""
        return self._scorer.scoring_version

    @property
    def judge(self) -> str:
        """What decides here, for the metadata of an evaluation."""
        return self._scorer.judge

    async def read(self, collection: str, scenario: str, messages: Sequence[Spoken], agent_role: Role) -> Transcript:
        """The transcript of messages, its tool calls checked against the scenario's tools; a long one off the loop."""
        if sum(map(weight, messages)) < HEAVY:
            return self._scorer.read(collection, scenario, messages, agent_role)
        return await asyncio.to_thread(self._scorer.read, collection, scenario, messages, agent_role)

    def check(self, config: RewardConfig) -> None:
        """Refuse, before any work, a config that names a judge which is not here (`InvalidRewardConfig`)."""
        self._scorer.check(config)

    async def read_ahead(self, requests: Sequence[ScoreRequest]) -> None:
        """Have what is new in the transcripts encoded together; scoring and simulating them then finds it done."""
        await self._scorer.read_ahead(requests)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
        """One outcome per request, in order."""
        refused = await self._telling.refused(requests)
        wanted = [request for place, request in enumerate(requests) if place not in refused]
        with self._metrics.scoring_seconds.time():
            found = iter(await self._scorer.score(wanted))
        outcomes = [refused[place] if place in refused else next(found) for place in range(len(requests))]
        self._count(requests, outcomes)
        return list(map(self._telling.told, requests, outcomes))

    def begin(self) -> Callable[[ReadNow], MeteredBegun]:
        """What a job of a scoring thread calls to read a conversation and to begin scoring it; `finish` ends that."""
        begun = self._scorer.begin()

        def begin(given: ReadNow) -> MeteredBegun:
            started = time.perf_counter()
            transcript = self._scorer.read(given.collection, given.scenario, given.messages, given.agent_role)
            request = ScoreRequest(given.collection, given.scenario, transcript, given.config, given.lab_id)
            return MeteredBegun(begun([request]), time.perf_counter() - started)

        return begin

    async def finish(self, begun: MeteredBegun) -> Scored | Unscored:
        """The outcome."""
        started = time.perf_counter()
        if refused := await self._telling.refused(begun.begun.requests):
            return refused[0]
        outcomes = await self._scorer.finish(begun.begun)
        self._metrics.scoring_seconds.observe(begun.seconds + time.perf_counter() - started)
        self._count(begun.begun.requests, outcomes)
        return self._telling.told(begun.begun.requests[0], outcomes[0])

    def _count(self, requests: Sequence[ScoreRequest], outcomes: Sequence[Scored | Unscored]) -> None:
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Unscored):
                self._metrics.unscored.labels(outcome.code).inc()
                if isinstance(outcome.error, JudgeFailed):
                    self._metrics.judge_failures.labels(outcome.error.kind).inc()
                continue
            self._metrics.rewarded(request.collection, request.scenario, outcome.reward, outcome.scoring_version)
            if outcome.abstained:
                self._count_abstentions(request, outcome.abstained)

    def _count_abstentions(self, request: ScoreRequest, abstained: Sequence[str]) -> None:
        rubric = self._vault.open(request.collection, request.scenario).secrets.rubric
        for criterion in rubric.criteria:
            if criterion.id in abstained:
                self._metrics.judge_abstentions.labels(criterion.check.kind).inc()
