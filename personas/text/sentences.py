"""Cuts a text into sentences. The only splitter of the project: whoever quotes a sentence quotes one of these.

`clauses` are never quoted: the reader looks at them besides their sentence, because one sentence may ask two things.
"""

from __future__ import annotations

import re

from personas.text.memory import remembered
from personas.text.plain import plain

MAX_CHARS = 400
"""A longer sentence is cut at a space: nothing is hidden behind its beginning, and no encoder reads more at once."""

MAX_CLAUSES = 5

_BREAK = re.compile(
    r"(?:(?<=[.!?\u2026])[\"')\]]*)?\n(?:[-*\u2022>]+\s+|\(?\d{1,2}[.)]\s+)?"
    r"|(?<=[.!?\u2026])[\"')\]]*\s+|(?<=[?!])(?=[A-Z])"
)
_BULLET = re.compile(r"^(?:[-*\u2022>]+|\(?\d{1,2}[.)])\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|dr|mr|mrs|ms|prof|st|vs|approx|no|a\.m|p\.m|inc|ltd|fig|[A-Z])\.$", re.IGNORECASE
)
_JOINT = re.compile(r"\s*[,;:\u2013\u2014]\s+(?:(?:and|or|but)\s+)?|\s+-\s+|\s+(?:and|or|but)\s+")


@remembered(8192)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text in order, in plain form; items of a list and lines are sentences of their own."""
    pieces: list[str] = []
    glue = False
    for piece in (_BULLET.sub("", each.strip()) for each in _BREAK.split(_BULLET.sub("", plain(text)))):
        if not any(map(str.isalnum, piece)):
            glue = False
            continue
        if glue:
            pieces[-1] = f"{pieces[-1]} {piece}"
        else:
            pieces.append(piece)
        glue = bool(_ABBREVIATION.search(piece))
    return tuple(part for piece in pieces for part in _portions(piece))


@remembered(8192)
def clauses(sentence: str) -> tuple[str, ...]:
    """The parts of a sentence between commas, semicolons, dashes, "and", "or" and "but"; none of an undivided one."""
    parts = tuple(part for part in _JOINT.split(sentence) if any(map(str.isalpha, part)))
    return parts[:MAX_CLAUSES] if len(parts) > 1 else ()


def _portions(piece: str) -> list[str]:
    parts: list[str] = []
    while len(piece) > MAX_CHARS:
        cut = piece.rfind(" ", 1, MAX_CHARS)
        cut = cut if cut > 0 else MAX_CHARS
        parts.append(piece[:cut])
        piece = piece[cut:].lstrip()
    return [*parts, piece] if piece else parts
