"""Says who wins where two rewards are equal, if there is a judge of pairs to ask.

The margin of such a win stays 0, because no judge puts a number on a pair. Rewards that differ are never overruled,
however little they differ: a winner with the lower reward would be a contradiction in one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reward_server.errors import JudgeFailed
from reward_server.scoring.aggregate import considered
from reward_server.scoring.compare import Winner
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.variant import heard_in
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario, Vault
from scenarios.schema import Criterion


class PreferredSide(Protocol):
    """The verdict of a judge of pairs."""

    @property
    def winner(self) -> Winner:
        """`tie` where it sees no difference, or where it is not sure."""


class PairJudge(Protocol):
    """Says which of two transcripts is better; the order in which it is given them does not matter."""

    async def compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PreferredSide:
        """The better one by these criteria; `JudgeFailed` or `BudgetExhausted` if nobody can be asked."""


class TieBreaker:
    """Has a judge of pairs look at transcripts of equal reward."""

    def __init__(self, judge: PairJudge, vault: Vault, metrics: Metrics) -> None:
        self._judge = judge
        self._vault = vault
        self._metrics = metrics

    async def winner(self, a: ScoreRequest, b: ScoreRequest) -> Winner:
        """The better of two transcripts of one scenario and config, by the criteria that the config weighs."""
        scenario = heard_in(self._vault, a.collection, a.scenario, a.transcript)
        criteria = considered(scenario.secrets.rubric, a.config)
        try:
            preferred = await self._judge.compare(scenario, criteria, a.transcript, b.transcript, a.lab_id)
        except JudgeFailed as failure:
            self._metrics.judge_failures.labels(failure.kind).inc()
            raise
        return preferred.winner
