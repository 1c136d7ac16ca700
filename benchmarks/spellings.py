"""Odd spellings of a text, each still readable by a person, that a program may read as something else.

An agent that is rude, or promises what it must not, can disguise the words so. Every spelling is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """One way to disguise a text; `family` is the line of the table it belongs to."""

    family: str
    name: str
    spell: Callable[[str], str]


SPELLINGS: tuple[Spelling, ...] = ()
