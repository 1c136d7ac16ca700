"""Cuts sentences where something else is said in them, so that a statement is found wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from personas import lexicon

BEGINNING = re.compile(r"(?<=[a-z,;:]) (?=[A-Z][a-z'])")
"""Where another sentence seems to begin, without a stop before it."""
STRONG_ENDS = re.compile(r"[;:()\[\]{}|<>\"`=\u2014\u2013?!]+|\s[-/]+\s")
"""Signs behind which another sentence may stand."""
CLAUSE_ENDS = re.compile(
    rf"{STRONG_ENDS.pattern}|,|\s(?=(?:what|when|where|which|who|why|how) )"
    r"|\s(?=(?:do|does|did|have|has|are|is|was|were|can|could|will|would|should) (?:you|your|it|this|that|there|we) )"
)
"""Where a clause may end, written in small letters."""
_HEDGED = re.compile(r"\b(?:if|unless|whether|not|never|nothing|nobody|cannot|without|instead|rather|suppose)\b|n't\b")
"""What may take back, or make conditional, what the clause behind it says."""
_CONDITION = re.compile(r"(?:if|unless|whether|when|once|suppose|before|after|until)\b")
_NO_STATEMENTS = (lexicon.QUESTION_START, lexicon.AUX_START, _CONDITION)
_WORDS = 4
_MOST = 0.75
"""A clause that is so much of a statement says nothing that the statement does not."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A statement within a sentence, in lower case, and the sentence, whose other words may take it back."""

    clause: str
    within: str


def asides(text: str, *, whole: bool = False) -> Iterator[Aside]:
    """The clauses of a text that could stand as statements; the `whole` text is one if wished."""
    if whole and states(bare := text.lower().strip(" ?!.")) and not _asks(bare):
        yield Aside(bare, text)
    for piece in BEGINNING.split(text):
        low = piece.lower()
        clauses = [each.strip() for each in CLAUSE_ENDS.split(low)]
        for clause, behind in zip(clauses, [*clauses[1:], ""], strict=True):
            if not states(clause) or (not whole and len(clause) > _MOST * len(text)):
                continue
            before = low.partition(clause)[0]
            if not (_HEDGED.search(before) or _asks(before) or _CONDITION.match(behind)):
                yield Aside(clause, text)


def _asks(low: str) -> bool:
    """Whether a question begins there: what it lists is asked, too."""
    begun = STRONG_ENDS.split(low)[-1].strip()
    at_start = any(form.match(begun) for form in (lexicon.QUESTION_START, lexicon.AUX_START))
    return at_start or any(form.search(begun) for form in (lexicon.INVERSION, lexicon.WH_INVERSION))


def states(clause: str) -> bool:
    """Whether a clause in lower case could stand as a statement: long enough, no question, no condition."""
    return len(clause.split()) >= _WORDS and not any(form.match(clause) for form in _NO_STATEMENTS)
