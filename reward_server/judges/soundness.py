"""Checks verdicts of judges that are not ours: an answer to the question, in range, on evidence."""

from __future__ import annotations

from math import isfinite

from reward_server.judges.base import Case, Verdict, VerdictStatus, occurs
from scenarios.schema import Criterion


def is_sound(case: Case, criterion: Criterion, verdict: object) -> bool:
    """True if a verdict decides the criterion within range, on words that were said; or abstains."""
    if not isinstance(verdict, Verdict) or verdict.criterion_id != criterion.id:
        return False
    if verdict.spread is not None and not (isfinite(verdict.spread) and verdict.spread >= 0.0):
        return False
    if verdict.status is VerdictStatus.ABSTAINED:
        return verdict.value is None
    if verdict.value is None or not 0.0 <= verdict.value <= 1.0:
        return False
    if verdict.value == 0.0:
        return verdict.status is VerdictStatus.UNMET
    fits = verdict.status is (VerdictStatus.MET if verdict.value == 1.0 else VerdictStatus.PARTIAL)
    return fits and bool(verdict.evidence) and occurs(case.transcript, verdict.evidence)
