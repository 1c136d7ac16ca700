"""How long a text is as it is read: in Unicode's normal form NFKC, which writes ligatures and signs out.

U+FDFA alone becomes 18 characters, so the length that a text is sent in says little of what it costs to read. Only one
copy of each character is normalised here: a whole text may be made to be slow to normalise.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

MAX_NORMALISED_CHARACTERS = 20_000
"""Of a message's content: twice what it may be sent with, so that prose with `…` and `½` never meets this limit."""


def normalised_length(text: str) -> int:
    """The characters of a text in NFKC, each written out by itself; what accents combine to in their place is not
    followed. ASCII, and any text of characters that stay single, has its own length.
    """
    if text.isascii():
        return len(text)
    shapes = [each for each in set(text) if not each.isascii()]
    written = unicodedata.normalize("NFKC", "\n".join(shapes)).split("\n")
    growth = {shape: len(form) - 1 for shape, form in zip(shapes, written, strict=True) if len(form) > 1}
    if not growth:
        return len(text)
    counts = Counter(text)
    return len(text) + sum(more * counts[shape] for shape, more in growth.items())
