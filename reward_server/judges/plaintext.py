"""Agent text as rules read it: no disguises, plain quotes, single spaces."""

from __future__ import annotations

from personas.disguise import undisguised
from personas.wording import plain


def cleaned(text: str) -> str:
    """The text in the one form that patterns are searched in."""
    return " ".join(plain(undisguised(text)).split())
