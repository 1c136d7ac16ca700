"""Sentences without the noise in them, for what costs: machine text beside a question does not make it no question.

What is said among noise is not said clearly, so nothing is earned by what is found here.
"""

from __future__ import annotations

import re

from personas import manners
from personas.wording import FUNCTION_WORDS, tokens

_MACHINE = re.compile(
    r"</?\w+[^>]{0,80}>|[A-Za-z0-9+/=_-]{40,}|0x[0-9a-f]{6,}|[^\w\s]*[{}\[\]|\\^~<>`\"#*=][^\w\s?]*", re.IGNORECASE
)
_FOREIGN = manners.FOREIGN_WORDS - FUNCTION_WORDS
_END = 4
"""So near to the end a question mark may stand."""


def without_noise(sentence: str) -> str:
    """A sentence without signs, words of other languages and talk about the simulation."""
    meant = _MACHINE.sub(" ", sentence)
    for meta in (manners.META, manners.META_MARKUP):
        meant = re.sub(meta.pattern, " ", meant, flags=re.IGNORECASE)
    kept = " ".join(word for word in meant.split() if _is_word(word)).rstrip(" ?,;:.")
    return f"{kept}?" if "?" in sentence[-_END:] else kept


def _is_word(word: str) -> bool:
    letters = [each for each in word if each.isalpha()]
    foreign = sum(not letter.isascii() for letter in letters) * 4 > len(letters)
    return bool(letters) and not foreign and not _FOREIGN.intersection(tokens(word))
