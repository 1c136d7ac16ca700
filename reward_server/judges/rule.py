"""The rule judge: regular expressions and limits over the agent's turns.

Rules see cleaned text, so that look-alike letters, invisible characters and odd spacing neither hide a
phrase nor make one. They are the weakest evidence there is: lint lets a rule pay only beside facts, and what pays
has to stand in a sentence of the agent's own that is more than the bare words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from personas.replay import TurnRecord
from personas.wording import tokens
from reward_server.judges.base import MAX_QUOTE, NOT_MET, Case, Evidence, Finding, Verdict, cite, verdict
from reward_server.judges.patterns import compiled
from reward_server.judges.plaintext import cleaned
from scenarios.schema import Criterion, LengthCheck, SaysCheck

Selected = Sequence[tuple[int, Sequence[str]]]
"""Turn numbers, each with cleaned texts of the agent: its sentences, or all it wrote as one."""
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST = 30
"""Characters of a word, or of most addresses."""
_SENTENCE = 4
"""Different words, at least, of a sentence in which a pattern pays: "anything else" alone offers nothing."""


class RuleJudge:
    """Decides the checks that are patterns and counts."""

    name = "rule"
    version = "5"
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
    said = [t.own for t in case.record.turns] if earns else [(t.agent,) for t in case.transcript.turns]
    turns = [(number, [cleaned(text) for text in texts]) for number, texts in enumerate(said, start=1)]
    selected: Selected = {"first": turns[:1], "last": turns[-1:], "any": turns}[check.where]
    least = _SENTENCE if earns else 0
    needed = [_search(case, selected, pattern, least) for pattern in check.all]
    choice = [found for pattern in check.any if (found := _search(case, selected, pattern, least))]
    if not all(needed) or (check.any and not choice):
        return NOT_MET
    return Finding(1.0, tuple(dict.fromkeys(e for e in (*needed, *choice[:1]) if e)))


def _search(case: Case, turns: Selected, pattern: str, least: int) -> Evidence | None:
    for number, texts in turns:
        for text, seam in _places(texts):
            found = compiled(pattern).search(text)
            across = seam < 0 or (found is not None and found.start() < seam < found.end())
            if found and across and len(set(tokens(text))) >= least:
                return cite(case.transcript, number, "agent", found.group()[:MAX_QUOTE])
    return None


def _places(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Where a pattern may stand: in a text, or on both sides of the seam of two, which may be one broken line."""
    for text in texts:
        yield text, -1
    for before, behind in pairwise(texts):
        yield f"{before} {behind}", len(before)


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
    words = sum(map(_words_in, cleaned(turn.agent_text).split()))
    asked = len(turn.hearing.reading.questions) + len(turn.hearing.reading.buried)
    return check.min_words <= words <= check.max_words and (check.max_questions is None or asked <= check.max_questions)
