"""Marks that give a fact away when it is told in other words: codes, numbers and names; and what takes a telling back.

Words only, no meaning. A line that denies, doubts or asks back tells nothing, however alike it sounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from personas.text.wording import tokens

CODE_CHARS = 3
"""A single number shorter than this may be any number."""

_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][^\W\d_]{4,}")
_DENIES = re.compile(
    r"\b(?:not|never|nothing|nobody|none|neither|nor|without|cannot|\w+n't)\b|\bno\b(?!,| problem| worries)"
)
_DOUBTS = re.compile(
    r"\b(?:(?:don't|do not|didn't|wouldn't) (?:know|remember|recall|understand)|not sure|no idea|who knows|rather not|"
    r"(?:can't|cannot|couldn't|could not) (?:say|tell|remember|recall)|none of your|why do you)\b|\?\W*$"
)


def digits_of(text: str) -> frozenset[str]:
    """The words of a text that hold a digit."""
    return frozenset(word for word in tokens(text) if any(character.isdigit() for character in word))


def words_of(lines: Iterable[str]) -> frozenset[str]:
    """All words of lines."""
    return frozenset(word for line in lines for word in tokens(line))


def marks_of(wording: str, known: frozenset[str]) -> frozenset[str]:
    """Words that together give a wording away, none of them `known` from elsewhere; empty when there are not enough."""
    numbers = digits_of(wording) - known
    if len(numbers) > 1 or any(len(number) >= CODE_CHARS for number in numbers):
        return numbers
    marks = numbers | {name.lower() for name in _NAME.findall(wording)} - known
    return marks if len(marks) > 1 else frozenset()


def doubts(sentence: str, wording: str) -> bool:
    """True if a sentence doubts, evades or asks where a wording does not."""
    return bool(_DOUBTS.search(sentence.lower())) and not _DOUBTS.search(wording.lower())


def agrees(sentence: str, wording: str) -> bool:
    """True if a sentence affirms or denies as a wording does."""
    return bool(_DENIES.search(sentence.lower())) == bool(_DENIES.search(wording.lower()))
