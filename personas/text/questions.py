"""The form of a question: whether a yes can answer it, and the questions that one sentence joins by "and".

Grammar alone: the closed classes of question words, auxiliaries and prepositions.
"""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import pairwise

from personas.text.wording import plain, words_of

__all__ = ["QuestionForm", "form_of", "questions_in"]

_CLAUSE = re.compile(r"[,;:\u2013\u2014(]|\s-\s|\b(?:and|but|so|or|then)\b")
_WORD = re.compile(r"[a-z']+")
_OPENERS = words_of("what which who whom whose where when why how")
_PREPOSITIONS = words_of("on at in for from with to by of about since until through under over")
_GOVERNORS = words_of("ask know tell me say see wonder sure explain describe remember guess think")
_AUXILIARIES = words_of(
    "is are was were am does did has had can could will would shall should may might must isn't aren't don't doesn't"
)
_JOINED = re.compile(
    rf",?\s+(?=(?:and|but)\s+(?:(?:{'|'.join(sorted(_PREPOSITIONS))})\s+)?"
    rf"(?:(?:{'|'.join(sorted({*_OPENERS, *_AUXILIARIES}))})\b|(?:do|have)\s+(?:you|they|we|i)\b))",
    re.IGNORECASE,
)
"""Where a question begins behind another. "And do the test" goes on with what was begun; "and do you" asks anew."""
_OFFERS = ("how about", "what about", "what if", "why not", "why don't")
"""They begin like a question for something, and propose it."""


class QuestionForm(StrEnum):
    """The answer that a question wants."""

    OPEN = "open"
    """Something told: no yes answers it."""
    CHOICE = "choice"
    POLAR = "polar"
    """A yes or a no."""
    OFFER = "offer"
    """Proposes, or asks elliptically ("What about …?"): only what is said tells which."""
    NONE = "none"
    """No question."""


def form_of(sentence: str) -> QuestionForm:
    """The form of a sentence's last question; `NONE` where it ends with no question mark."""
    text = plain(sentence).lower().strip().rstrip("\"') ")
    if not text.endswith("?"):
        return QuestionForm.NONE
    clauses = [each for each in (_WORD.findall(part) for part in _CLAUSE.split(text)) if each]
    if any(_opens(clause) for clause in clauses):
        return QuestionForm.OPEN
    if any(" ".join(clause).startswith(_OFFERS) for clause in clauses):
        return QuestionForm.OFFER
    return QuestionForm.CHOICE if re.search(r"\bor\b", text) else QuestionForm.POLAR


def questions_in(sentence: str) -> tuple[str, ...]:
    """The questions that a sentence joins ("Who pays for it, and when could she move in?"), each as one of its own."""
    if not sentence.rstrip("\"') ").endswith("?"):
        return (sentence,)
    *first, last = _JOINED.split(sentence)
    return (*(f"{part.rstrip(' ?,;')}?" for part in first), last) if first else (sentence,)


def _opens(clause: list[str]) -> bool:
    line = " ".join(clause)
    if line.startswith(_OFFERS):
        return False
    clause = [word.split("'")[0] for word in clause]
    first = clause[1:] if clause[0] in _PREPOSITIONS else clause
    if first and first[0] in _OPENERS:
        return True
    return any(before in _GOVERNORS and word in _OPENERS for before, word in pairwise(clause))
