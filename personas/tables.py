"""The tables of other people that decide how text is read: they are part of what a reward rests on."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import cache
from importlib.metadata import version

from personas import english
from personas.disguise import lookalikes

_PACKAGES = ("symspellpy", "confusable-homoglyphs")


@cache
def digest() -> str:
    """Of the dictionary, the look-alikes, and the versions of what reads them (64 hexadecimal digits)."""
    parts = (
        english.digest(),
        repr(sorted(lookalikes().items())),
        unicodedata.unidata_version,
        *(version(package) for package in _PACKAGES),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
