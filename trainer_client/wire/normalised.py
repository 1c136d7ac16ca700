"""The length of a text as it is read: in Unicode's normal form NFKC, which writes ligatures and signs out.

U+FDFA alone becomes 18 characters, so the length that a text is sent in says little of what it costs to read. Only the
characters that grow are looked up: a whole text may be made to be slow to normalise.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache

MAX_NORMALISED_CHARACTERS = 20_000
"""Of a message's content: twice what it may be sent with, so that prose with `…` and `½` never meets this limit."""
_LAST = 0x20000
"""From this code point on, no character becomes more than one."""


def normalised_length(text: str) -> int:
    """The characters of a text in NFKC, each written out by itself; what accents combine to in their place is not
    followed. ASCII, and any text of characters that stay single, has its own length.
    """
    if text.isascii():
        return len(text)
    growth = _growth()
    if not (growing := growth.keys() & set(text)):
        return len(text)
    counts = Counter(text)
    return len(text) + sum(growth[each] * counts[each] for each in growing)


@cache
def _growth() -> Mapping[str, int]:
    """By how much each of the characters grows that do, some 1,200."""
    written = ((chr(code), unicodedata.normalize("NFKC", chr(code))) for code in range(0x80, _LAST))
    return {character: len(form) - 1 for character, form in written if len(form) > 1}
