"""Words in messages: which known name was meant by one that nobody here has, and nouns behind their count.

Hand in only names that whoever reads the answer may see.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

OF_IDS = 0.75
"""How near ids have to be: their digits are drawn, so that strangers are alike now and then."""
_LONGEST = 128
"""Characters of a name that are looked at: comparing takes time."""


def nearest(name: str, known: Iterable[str], nearness: float = 0.6) -> str | None:
    """The known name that is most like it, if one is near."""
    return next(iter(get_close_matches(name[:_LONGEST], list(known), 1, nearness)), None)


def counted(count: int, noun: str) -> str:
    """A count with its noun, of which more than one have an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def meant(name: str, known: Iterable[str], nearness: float = 0.6) -> str:
    """A question to put behind the sentence that refuses a name, with a blank before it; empty where none is near."""
    found = nearest(name, known, nearness)
    return "" if found is None else f" Did you mean {found}?"
