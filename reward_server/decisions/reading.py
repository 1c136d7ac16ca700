"""Reads what a server says of a question, and believes none of it unchecked.

A number counts only if it is one, in range, for every option and for nothing else, and if they come to 1 together.
Everything else is a failure with its kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from reward_server.decisions.questions import NO, YES, AnswerProbabilities, Outcome, Typed, Undecided
from reward_server.llm.base import FailureKind

FAR_FROM_ONE = 0.05
"""How far a sum may be from 1: servers round, and over many options that adds up."""
ROUNDED = 1e-3
"""How far a probability may be outside [0, 1] for the same reason."""


def distribution(question: Typed, given: Mapping[str, object]) -> Outcome:
    """The decision that these probabilities are, by label."""
    if set(given) != set(question.labels):
        return Undecided(FailureKind.UNKNOWN_LABEL)
    found = {label: _number(given[label]) for label in question.labels}
    if any(value is None for value in found.values()):
        return Undecided(FailureKind.MALFORMED)
    values = {label: value for label, value in found.items() if value is not None}
    if not all(map(math.isfinite, values.values())):
        return Undecided(FailureKind.NOT_FINITE)
    if not all(-ROUNDED <= value <= 1 + ROUNDED for value in values.values()):
        return Undecided(FailureKind.OUT_OF_RANGE)
    total = math.fsum(values.values())
    if abs(total - 1) > FAR_FROM_ONE:
        return Undecided(FailureKind.NO_DISTRIBUTION)
    return AnswerProbabilities({label: min(max(value, 0.0), 1.0) / total for label, value in values.items()})


def probability(question: Typed, given: object) -> Outcome:
    """The decision on a predicate of which the probability of yes is given."""
    value = _number(given)
    if value is None:
        return Undecided(FailureKind.MALFORMED)
    return distribution(question, {YES: value, NO: 1 - value})


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
