"""Cuts a text into sentences. The only splitter of the project: whoever quotes a sentence quotes one of these."""

from __future__ import annotations

import re
from functools import lru_cache

from personas.reading.plain import plain

MAX_CHARS = 400
"""A longer sentence is cut at a space: nothing is hidden behind its beginning, and no encoder reads more at once."""

_BREAK = re.compile(r"(?<=[.!?\u2026])[\"')\]]*\s+|\n(?:[-*\u2022>]+\s+|\(?\d{1,2}[.)]\s+)?|(?<=[?!])(?=[A-Z])")
_BULLET = re.compile(r"^(?:[-*\u2022>]+|\(?\d{1,2}[.)])\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|dr|mr|mrs|ms|prof|st|vs|approx|no|a\.m|p\.m|inc|ltd|fig|[A-Z])\.$", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text in order, in plain form; items of a list and lines are sentences of their own."""
    pieces: list[str] = []
    glue = False
    for piece in (_BULLET.sub("", each.strip()) for each in _BREAK.split(plain(text))):
        if not any(map(str.isalnum, piece)):
            glue = False
            continue
        if glue:
            pieces[-1] = f"{pieces[-1]} {piece}"
        else:
            pieces.append(piece)
        glue = bool(_ABBREVIATION.search(piece))
    return tuple(part for piece in pieces for part in _portions(piece))


def _portions(piece: str) -> list[str]:
    parts: list[str] = []
    while len(piece) > MAX_CHARS:
        cut = piece.rfind(" ", 1, MAX_CHARS)
        cut = cut if cut > 0 else MAX_CHARS
        parts.append(piece[:cut])
        piece = piece[cut:].lstrip()
    return [*parts, piece] if piece else parts
