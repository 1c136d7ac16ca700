"""Odd spellings of a text, each still readable by a person, that a program may read as something else.

An agent that is rude, or promises what it must not, can disguise the words so. Every spelling is deterministic.
Those who mend what reads such words read these; `benchmarks.held_out_disguises` are for measuring alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.spelling_pieces import Spell
from benchmarks.spelt_letters import LOOKALIKES, MARKED, SIGNED, STYLED, UNSEEN
from benchmarks.spelt_mixtures import ALONE, TOGETHER
from benchmarks.spelt_texts import ASKED, FILLED, GLUED, QUOTED, STOPPED, WRAPPED
from benchmarks.spelt_words import DROPPED, HIDDEN, SOUNDS, SPACED


@dataclass(frozen=True)
class Spelling:
    """One way to disguise a text; `family` is the line of the table it belongs to."""

    family: str
    name: str
    spell: Spell


def _family(name: str, spells: Mapping[str, Spell]) -> Iterable[Spelling]:
    return (Spelling(name, each, spell) for each, spell in spells.items())


SPELLINGS: tuple[Spelling, ...] = (
    *_family("look-alike letters", LOOKALIKES),
    *_family("styled letters", STYLED),
    *_family("invisible characters", UNSEEN),
    *_family("marks on letters", MARKED),
    *_family("signs within words", SIGNED),
    *_family("spaces within words", SPACED),
    *_family("letters changed", DROPPED),
    *_family("letters hidden", HIDDEN),
    *_family("spelt by ear", SOUNDS),
    *_family("words glued", GLUED),
    *_family("fillers", FILLED),
    *_family("wrapped up", WRAPPED),
    *_family("quoted", QUOTED),
    *_family("stops changed", STOPPED),
    *_family("made a question", ASKED),
    *_family("one word alone", ALONE),
    *_family("several at once", TOGETHER),
)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(spelling.family for spelling in SPELLINGS))
