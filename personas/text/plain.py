"""Text as it is read: one normal form for everything downstream.

Compatibility forms (NFKC), invisible characters, stacked accents and look-alike letters are folded. Nothing is decoded
beyond that: text that stays unreadable is refused by the reader, not guessed at.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib.resources import files
from string import ascii_letters

from personas.text.memory import remembered

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\u00b4\u2032\u2019\u2018\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
        "\r": "\n",
        "\u2028": "\n",
        "\u2029": "\n",
    }
)
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_WORD = re.compile(r"\S+")
_MARKS_PER_LETTER = 2
_DROPPED = frozenset({"Cf", "Cc", "Co", "Cn", "Cs"})


@remembered(8192)
def plain(text: str) -> str:
    """The text in its normal form; ASCII without control characters comes back as it is but for runs of spaces.

    Lines stay lines: they may be items of a list. The result is never longer than NFKC makes it.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _few_marks(text)).translate(_QUOTES)
        text = _WORD.sub(lambda word: _latin(word[0]), text)
    else:
        text = text.replace("\r", "\n")
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _DROPPED) if _odd(text) else text
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _odd(text: str) -> bool:
    return not text.isprintable()


def _few_marks(text: str) -> str:
    """At most two combining marks on a letter: no language has more, and normalising many takes their square."""
    if not any(map(unicodedata.combining, text)):
        return text
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MARKS_PER_LETTER:
            kept.append(character)
    return "".join(kept)


def _latin(word: str) -> str:
    """A word that mixes ASCII letters with look-alikes from other scripts, in ASCII letters; others as they are."""
    if word.isascii() or not any(c in ascii_letters for c in word):
        return word
    return "".join(_lookalikes().get(c, c) for c in word)


@cache
def _lookalikes() -> dict[str, str]:
    """Characters and the ASCII letters they are taken for, by Unicode's table of confusables."""
    # Read here: the package reads another file where an environment variable says so.
    table = json.loads((files("confusable_homoglyphs") / "confusables.json").read_text(encoding="utf-8"))
    return {
        shape: letter
        for letter in ascii_letters
        for found in table.get(letter, ())
        if len(shape := found["c"].strip("\u200e")) == 1
        and not shape.isascii()
        and not unicodedata.name(shape, "").startswith("LATIN")
    }
