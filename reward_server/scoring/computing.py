"""Scores conversations in a scoring thread as far as that needs nobody else: read, replay, decide, compute.

Each request fails alone: what one raises is its outcome.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, runtime_checkable

import structlog

from personas.case.compiled import CompiledCase
from personas.hearing.types import AgentTurn
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader, Turn
from personas.replay.replayer import ConductCounts, Exchange, Record, replay, turns_of
from reward_server.errors import JudgeFailed, LabsError
from reward_server.judges.base import Case
from reward_server.judges.panel import Panel
from reward_server.scoring.aggregate import considered
from reward_server.scoring.compose import RUBRIC, ScoringComposite
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.echoes import without_echoes
from reward_server.scoring.estimates import Judges, JudgeSnapshot, missing_judge, reads_record, refused
from reward_server.scoring.gates import closed_gates
from reward_server.scoring.pending import PendingScore, StartedScoring
from reward_server.scoring.request import Read, ScoreRequest
from reward_server.scoring.requested import RequestedScenarios
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.total import UNDECIDABLE_KIND, total_of
from reward_server.scoring.versions import ScoringVersions
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion, Rubric

log = structlog.get_logger(__name__)

NOT_REPLAYED = Record((), {}, {}, {}, ConductCounts(), 0.0)
"""The record of a case that nobody reads the record of."""


@runtime_checkable
class Prefetching(Protocol):
    """A reader that can be told early what it will read."""

    def texts(self, case: CompiledCase, turns: Sequence[Turn]) -> list[str]:
        """The texts that reading the turns will embed, known turns left out."""

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Embed texts that will be read soon."""


class ScoreComputer:
    """The half of scoring that is arithmetic and reading."""

    def __init__(
        self,
        scenarios: RequestedScenarios,
        versions: ScoringVersions,
        panel: Panel,
        matcher: Matcher,
        reader: Reader,
    ) -> None:
        self._scenarios = scenarios
        self._versions = versions
        self._panel = panel
        self._matcher = matcher
        self._reader = reader
        self._prefetching = reader if isinstance(reader, Prefetching) else None

    @property
    def prefetches(self) -> bool:
        """True if the reader can be told early what it will read."""
        return self._prefetching is not None

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Have texts embedded, where the reader can do that early; awaited on the event loop."""
        if self._prefetching is not None and texts:
            await self._prefetching.prefetched(texts)

    def begun(self, snapshot: JudgeSnapshot, read: Read) -> StartedScoring:
        """Begin with a conversation: where texts have to be embedded first, that is all; else it is done at once."""
        started = time.perf_counter()
        request: ScoreRequest | None = None
        texts: Sequence[str] = ()
        outcome: PendingScore | Scored | Unscored | None
        try:
            request = read()
            texts = self._fresh_texts(request, snapshot)
            outcome = None if texts else self._judge(request, snapshot)
        except Exception as error:  # noqa: BLE001 (a request boundary: one transcript must not fail its batch)
            outcome = _failed(error, request)
        return StartedScoring(request, snapshot, texts, outcome, time.perf_counter() - started)

    def compute(self, begun: Sequence[StartedScoring]) -> list[PendingScore | Scored | Unscored]:
        """Go on with conversations whose texts were missing."""
        return [self._attempt(start.request, start.snapshot) for start in begun if start.request is not None]

    def fresh_texts_of(self, reads: Sequence[Read], snapshot: JudgeSnapshot) -> list[str]:
        """The texts that reading will embed; what is wrong with a request is met again when it is scored."""
        texts: dict[str, None] = {}
        for read in reads:
            with suppress(Exception):
                texts |= dict.fromkeys(self._fresh_texts(read(), snapshot))
        return list(texts)

    def replayed(self, scenario: SealedScenario, transcript: Transcript) -> tuple[Record, int]:
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

    def _attempt(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> PendingScore | Scored | Unscored:
        try:
            return self._judge(request, snapshot)
        except Exception as error:  # noqa: BLE001 (a request boundary: one transcript must not fail its batch)
            return _failed(error, request)

    def _fresh_texts(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> Sequence[str]:
        if self._prefetching is None or not self._is_replayed(request, snapshot.judges):
            return ()
        transcript = request.transcript
        case = self._scenarios.sealed(request).case
        return self._prefetching.texts(case, turns_of(transcript.opening, transcript.exchanges()))

    def _judge(self, request: ScoreRequest, snapshot: JudgeSnapshot) -> PendingScore | Scored:
        scenario, transcript, config = self._scenarios.sealed(request), request.transcript, request.config
        composite = self._scenarios.composite(request)
        missing = missing_judge(composite, snapshot.judges)
        if missing:
            # The scenario's own was there at start: that it has gone since is no mistake of the caller's.
            raise refused(missing, snapshot.judges) if config.composite else JudgeFailed(kind=UNDECIDABLE_KIND)
        record, recited = NOT_REPLAYED, 0
        if self._is_replayed(request, snapshot.judges):
            record, recited = self.replayed(scenario, transcript)
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
        version = self._versions.of(snapshot, scenario)
        pending = PendingScore(case, config, composite, criteria, gates, judged.verdicts, judged.open, version)
        return pending if pending.waits else total_of(pending, judged.verdicts, {}, snapshot)

    def _is_replayed(self, request: ScoreRequest, judges: Judges) -> bool:
        """True if anything that is asked for rests on the replay."""
        if not request.config.skip_safety_gate:
            return True
        with suppress(LabsError):  # which `_attempt` will meet again
            conversation_judges = [judges.get(name) for name in self._scenarios.composite(request).judges]
            return any(judge is None or reads_record(judge) for judge in conversation_judges)
        return False


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
