"""The rule judge: regular expressions and limits over the agent's turns.

Rules see cleaned text, so that look-alike letters, invisible characters and odd spacing neither hide a
phrase nor make one. They are the weakest evidence there is: lint lets a rule pay only beside facts, and what pays
has to stand in the agent's own sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from personas.replay import TurnRecord
from personas.wording import normal
from reward_server.judges.base import MAX_QUOTE, NOT_MET, Case, Evidence, Finding, Verdict, cite, verdict
from reward_server.judges.patterns import compiled
from reward_server.judges.plaintext import cleaned
from scenarios.schema import Criterion, LengthCheck, SaysCheck

Selected = Sequence[tuple[int, str]]
"""Turn numbers with the agent's cleaned text."""
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST = 30
"""Characters of a word, or of most addresses."""


class RuleJudge:
    """Decides the checks that are patterns and counts."""

    name = "rule"
    version = "3"
    kinds = frozenset({"says", "length"})

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion."""
        check = criterion.check
        finding = NOT_MET
        if check.says:
            finding = _says(case, check.says, earns=criterion.points > 0)
        elif check.length:
            finding = _length(case, check.length)
        return verdict(self, criterion, finding)


def _says(case: Case, check: SaysCheck, *, earns: bool) -> Finding:
    said = [" ".join(t.own) for t in case.record.turns] if earns else [t.agent for t in case.transcript.turns]
    turns = [(number, cleaned(text)) for number, text in enumerate(said, start=1)]
    selected: Selected = {"first": turns[:1], "last": turns[-1:], "any": turns}[check.where]
    needed = [_search(case, selected, pattern) for pattern in check.all]
    choice = [found for pattern in check.any if (found := _search(case, selected, pattern))]
    if not all(needed) or (check.any and not choice):
        return NOT_MET
    return Finding(1.0, tuple(dict.fromkeys(e for e in (*needed, *choice[:1]) if e)))


def _search(case: Case, turns: Selected, pattern: str) -> Evidence | None:
    for number, text in turns:
        found = compiled(pattern).search(text)
        if found:
            return cite(case.transcript, number, "agent", found.group()[:MAX_QUOTE])
    return None


def _length(case: Case, check: LengthCheck) -> Finding:
    # Small talk and repetitions of the right length do not make up for turns of the wrong one.
    first = {normal(turn.agent_text): turn.turn for turn in reversed(case.record.turns)}
    fresh = {
        turn.turn for turn in case.record.turns if turn.substantial and first[normal(turn.agent_text)] == turn.turn
    }
    misfits = sum(not _fits(turn, check) for turn in case.record.turns)
    fitting = [turn.turn for turn in case.record.turns if turn.turn in fresh and _fits(turn, check)]
    if not fitting or len(fitting) < check.share * (len(fitting) + misfits):
        return NOT_MET
    shown = sorted({fitting[0], fitting[-1]})
    return Finding(1.0, tuple(cite(case.transcript, turn, "agent", "") for turn in shown))


def _words_in(token: str) -> int:
    """One, or as many as were tied together where it is longer than a word or an address is."""
    return max(1, len(_LETTERS.findall(token))) if len(token) > _LONGEST else 1


def _fits(turn: TurnRecord, check: LengthCheck) -> bool:
    words = sum(map(_words_in, cleaned(turn.agent_text).split()))
    asked = len(turn.hearing.reading.questions)
    return check.min_words <= words <= check.max_words and (check.max_questions is None or asked <= check.max_questions)
