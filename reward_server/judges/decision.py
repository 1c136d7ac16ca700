"""Combines several answers of a language model: into a value, how much the answers differ, and the evidence.

The value is the mean over the samples of "met" (1 or 0), or of its probability where the judge weighs by
log-probabilities. Without evidence in any sample it is 0, however likely the model finds it.

The spread says how far that share may be off. It is the standard deviation of the posterior of a share of which k
samples were seen and m of them said "met", under the uniform prior Beta(1, 1) of Laplace's rule of succession (Gelman
et al., Bayesian Data Analysis, 2.4). It falls with more samples, and is never 0, because k equal answers are no proof
that the next one would be equal, too. A single sample has none, as it cannot show whether the model wavers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_server.judges.base import Evidence, Verdict, VerdictStatus, occurs
from reward_server.judges.reading import CheckedAnswer
from reward_server.transcripts.transcript import Transcript
from scenarios.schema import Criterion

MOST_QUOTES = 3
KEPT_REASON = 400
"""Characters of a reason that are kept for the operator."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One checked answer to an inquiry: per question what was answered, and what it counts, from 0 to 1."""

    answers: tuple[CheckedAnswer, ...] = field(repr=False)
    weights: tuple[float, ...]
    """How likely "met" was, or, where that is not asked for, 1 for met and 0 for not."""


def decide_by(samples: Sequence[Sample], criteria: Sequence[Criterion]) -> Any:
    """The decision as JSON, one entry per criterion."""
    return [_entry(samples, index, criterion) for index, criterion in enumerate(criteria)]


def _entry(samples: Sequence[Sample], index: int, criterion: Criterion) -> dict[str, Any]:
    answers = [sample.answers[index] for sample in samples]
    values = [sample.weights[index] for sample in samples]
    evidence = list(dict.fromkeys(answer.evidence for answer in answers if answer.evidence is not None))
    if not evidence:
        values = [0.0] * len(values)
    value = statistics.fmean(values)
    if criterion.cap is not None:
        value = float(value > 0.5)  # a failure happened or it did not: more than half of the samples say so
    return {
        "value": round(value, 4),
        "spread": _spread(values),
        "evidence": [[quote.turn, quote.quote] for quote in evidence[:MOST_QUOTES]] if round(value, 4) > 0 else [],
        "reasons": [answer.reason[:KEPT_REASON] for answer in answers],
    }


def _spread(values: Sequence[float]) -> float | None:
    """The standard deviation of Beta(1 + m, 1 + k - m), m being the sum of the k values; None for a single one."""
    k, m = len(values), math.fsum(values)
    return round(math.sqrt((1 + m) * (1 + k - m) / ((k + 2) ** 2 * (k + 3))), 4) if k > 1 else None


def usable(decision: Any, count: int, transcript: Transcript) -> bool:
    """True if something that was kept is a decision on so many criteria about this transcript."""
    return (
        isinstance(decision, list)
        and len(decision) == count
        and all(isinstance(entry, dict) and _sound(entry, transcript) for entry in decision)
    )


def _sound(entry: dict[str, Any], transcript: Transcript) -> bool:
    value, spread, evidence = entry.get("value"), entry.get("spread"), entry.get("evidence")
    if not isinstance(value, float) or not 0.0 <= value <= 1.0 or not isinstance(evidence, list):
        return False
    if spread is not None and not (isinstance(spread, float) and math.isfinite(spread) and spread >= 0.0):
        return False
    if (value > 0) != bool(evidence):
        return False
    return all(_is_quote(quote) for quote in evidence) and occurs(transcript, map(_evidence, evidence))


def _is_quote(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int) and isinstance(entry[1], str)


def _evidence(entries: list[Any]) -> Evidence:
    return Evidence(entries[0], "agent", entries[1])


def verdicts_of(decision: Any, criteria: Sequence[Criterion], judge: str, version: str) -> list[Verdict]:
    """The verdicts that a usable decision stands for."""
    return [_verdict(entry, criterion, judge, version) for entry, criterion in zip(decision, criteria, strict=True)]


def _verdict(entry: dict[str, Any], criterion: Criterion, judge: str, version: str) -> Verdict:
    value = entry["value"]
    status = VerdictStatus.MET if value == 1.0 else VerdictStatus.PARTIAL if value > 0 else VerdictStatus.UNMET
    evidence = tuple(_evidence(quote) for quote in entry["evidence"])
    return Verdict(criterion.id, status, value, evidence, judge, version, entry["spread"])
