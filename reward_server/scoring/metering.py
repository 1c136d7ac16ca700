"""Counts what scoring did and could not do: rewards, time, conversations without one, criteria that nobody decided.

Labels are codes and kinds of checks, never a criterion.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_server.errors import JudgeFailed
from reward_server.scoring.scored import Scored, Unscored
from reward_server.telemetry.metrics import Metrics
from scenarios.library import Vault
from scenarios.rubric_file import GIVEN

Where = tuple[str, str]
"""Collection and scenario."""


class ScoringMeter:
    """Counts the outcomes of a server's scorer."""

    def __init__(self, vault: Vault, metrics: Metrics) -> None:
        self._vault = vault
        self._metrics = metrics

    def count(self, places: Sequence[Where | None], outcomes: Sequence[Scored | Unscored], seconds: float) -> None:
        """Count one call: an outcome for each conversation, by where it was held; None where nobody could read that."""
        self._metrics.scoring_seconds.observe(seconds)
        for where, outcome in zip(places, outcomes, strict=True):
            if isinstance(outcome, Unscored):
                self._metrics.unscored.labels(outcome.code).inc()
                if isinstance(outcome.error, JudgeFailed):
                    self._metrics.judge_failures.labels(outcome.error.kind).inc()
            elif where is not None:
                lent = self._vault.is_lent(*where)
                # Labs may bring any number of rubrics: they are one on the page.
                self._metrics.rewarded(*((GIVEN, GIVEN) if lent else where), outcome.reward, outcome.scoring_version)
                if outcome.abstained:
                    self._count_abstentions(where, outcome.abstained)

    def _count_abstentions(self, where: Where, abstained: Sequence[str]) -> None:
        rubric = self._vault.open(*where).secrets.rubric
        for criterion in rubric.criteria:
            if criterion.id in abstained:
                self._metrics.judge_abstentions.labels(criterion.check.kind).inc()
