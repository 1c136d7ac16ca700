"""Takes the rubric's own words out of what an agent says, before the persona or a judge of meaning hears them.

A policy that got hold of a rubric, or guessed the style of one, could recite it: sentences about a good answer lie
close to a good answer. Nobody says such sentences to a person. A sentence is an echo if it contains the whole text
of a criterion or of a question to an LLM judge, or a machine name of the rubric. Everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from personas.text.memory import remembered
from personas.text.plain import plain
from personas.text.sentences import sentences
from personas.text.wording import normal
from scenarios.schema import Family, Rubric

LEAST_WORDS = 4
"""Shorter texts of criteria may be said by chance."""
_FAMILIES = "|".join(family.value for family in Family if "_" in family.value)


@dataclass(frozen=True, slots=True)
class WithoutRecitals:
    """A text without what it recites."""

    text: str
    recited: int
    """Sentences that were taken out."""


@dataclass(frozen=True, slots=True)
class _Recital:
    """The text that is searched for recitals."""

    lines: tuple[str, ...]
    """Texts of criteria and questions, in normal form."""
    names: re.Pattern[str]
    """Machine names: of criteria, families and dimensions."""


def without_echoes(rubric: Rubric, text: str) -> WithoutRecitals:
    """The text without sentences that recite the rubric; the very text if there are none."""
    recital = _recital_of(_Same(rubric))
    plain_text = _said(text)
    lines = [line for line in recital.lines if line in plain_text]
    if not lines and not recital.names.search(text):
        return WithoutRecitals(text, 0)
    spoken = sentences(text)
    own_sentences = [sentence for sentence in spoken if not _is_echo(sentence, lines, recital.names)]
    return WithoutRecitals("\n".join(own_sentences), len(spoken) - len(own_sentences))


def _is_echo(sentence: str, lines: Sequence[str], names: re.Pattern[str]) -> bool:
    plain_text = _said(sentence)
    # What is recited may be cut up into several sentences: a piece of a line that is there is no accident.
    is_piece = len(plain_text.split()) > 1 and any(plain_text in line for line in lines)
    return is_piece or any(line in plain_text for line in lines) or bool(names.search(sentence))


class _Same:
    """A rubric by identity: it is frozen, and hashing its contents would take longer than the search."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric

    def __hash__(self) -> int:
        return id(self.rubric)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.rubric is other.rubric


@lru_cache(maxsize=1024)
def _recital_of(same: _Same) -> _Recital:
    criteria = same.rubric.criteria
    questions = [check.judge.question for criterion in criteria for check in criterion.checks if check.judge]
    ids = [criterion.id for criterion in criteria if "_" in criterion.id]
    lines = [
        *(_said(text) for text in (*(criterion.about for criterion in criteria), *questions)),
        *(_said(f"was {name.replace('_', ' ')} met") for name in ids),
    ]
    names = "|".join([r"D[1-9]_[A-Za-z]+", _FAMILIES, *map(re.escape, ids)])
    return _Recital(
        tuple(line for line in lines if len(line.split()) >= LEAST_WORDS),
        re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", re.IGNORECASE),
    )


@remembered(8192, longest=10_000)
def _said(text: str) -> str:
    """The words of a text as a reader sees them, with a space at both ends, so that whole words are found."""
    return normal(plain(text))
