"""The rule judge: limits on the length of the agent's turns.

Lint lets it pay only beside facts, and only turns that bring something new count for the agent.
"""

from __future__ import annotations

import re

from personas.reading.acts import Act
from personas.reading.plain import plain
from personas.replay import TurnRecord
from reward_server.judges.base import NOT_MET, Case, Finding, Verdict, cite, verdict
from scenarios.schema import Criterion, LengthCheck

_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST = 30
"""Characters of a word, or of most addresses."""


class RuleJudge:
    """Decides the checks that are counts."""

    name = "rule"
    version = "5"
    kinds = frozenset({"length"})

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion."""
        length = criterion.check.length
        return verdict(self, criterion, _length(case, length) if length else NOT_MET)


def _length(case: Case, check: LengthCheck) -> Finding:
    # Small talk and repetitions of the right length do not make up for turns of the wrong one, however many they are.
    misfits = sum(not _fits(turn, check) for turn in case.record.turns)
    fitting = [turn.turn for turn in case.record.turns if turn.brings and _fits(turn, check)]
    if not fitting or len(fitting) < check.share * (len(fitting) + misfits):
        return NOT_MET
    shown = sorted({fitting[0], fitting[-1]})
    return Finding(1.0, tuple(cite(case.transcript, turn, "agent", "") for turn in shown))


def _words_in(token: str) -> int:
    """One, or as many as were tied together where it is longer than a word or an address is."""
    return max(1, len(_LETTERS.findall(token))) if len(token) > _LONGEST else 1


def _fits(turn: TurnRecord, check: LengthCheck) -> bool:
    words = sum(map(_words_in, plain(turn.agent_text).split()))
    asked = sum(sentence.does(Act.ASK) for sentence in turn.hearing.reading.readable)
    return check.min_words <= words <= check.max_words and (check.max_questions is None or asked <= check.max_questions)
