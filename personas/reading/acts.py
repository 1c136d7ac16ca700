"""The types of a reading: what the sentences of one agent turn do, and which topics and commitments they are about.

A reading depends on the case, the persona's last line and the turn alone. What it is worth in a state of the
conversation (gates, repetition, rapport) is the business of `personas.hearing.hear`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class Act(StrEnum):
    """An act of a sentence. A sentence may do several things."""

    ASK = "ask"
    """Asks for specific information, in any form."""
    INVITE = "invite"
    """Invites the persona to tell ("Walk me through it.")."""
    EMPATHY = "empathy"
    """Names or grants a feeling, relieves shame, reassures."""
    COURTESY = "courtesy"
    """Thanks, praise, polite filler: fits any conversation."""
    INFORM = "inform"
    """Explains or states something."""
    RECAP = "recap"
    """Restates what the persona said."""
    PROPOSE = "propose"
    """Promises, decides, offers, instructs or advises."""
    CHECK = "check"
    """Checks in or asks for consent ("Is that all right with you?")."""
    GREET = "greet"
    CLOSE = "close"
    """Says goodbye or ends the talk."""
    PROCESS = "process"
    """Is about the talk itself: notes, waits, disclosures, signatures."""
    SOCIAL = "social"
    """Small talk outside the matter."""
    RUDE = "rude"
    META = "meta"
    """Is about prompts, scoring or being simulated."""
    UNREADABLE = "unreadable"
    """No speech that a person of the case's language could follow."""


class Stance(StrEnum):
    """The way in which a sentence puts a promise, an instruction, advice or an offer."""

    NONE = "none"
    ASSERTED = "asserted"
    NEGATED = "negated"
    ASKED = "asked"
    QUOTED = "quoted"
    CONDITIONAL = "conditional"
    OPTION = "option"
    PAST = "past"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ReadCandidate:
    """A topic or a commitment that a sentence may be about, with the reader's probability that it is."""

    id: str
    confidence: float
    binding: float | None = None
    """Of a commitment that costs: the probability of a second reading that the agent makes it; None without one."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a turn. Private: it names topics and commitments of the case."""

    text: str
    acts: frozenset[Act]
    stance: Stance = Stance.NONE
    topics: tuple[ReadCandidate, ...] = ()
    """What it may ask about, most probable first; none it is surely not about."""
    commitments: tuple[ReadCandidate, ...] = ()
    """What it may commit the agent to, most probable first."""
    background: tuple[ReadCandidate, ...] | None = None
    """What of the persona's background it may be about; None from a reader that tells it only when asked (`beside`)."""

    def does(self, *acts: Act) -> bool:
        """True if it does any of these."""
        return not self.acts.isdisjoint(acts)


def is_question(sentence: Sentence) -> bool:
    """True if it ends with a question mark."""
    return sentence.text.rstrip("\"') ").endswith("?")


SCRAP_WORDS = 3
LISTED_SENTENCES, LISTED_PIECES = 6, 8
"""So many scraps, as sentences or between commas, are a list of words if they are most of a turn."""


@dataclass(frozen=True)
class Reading:
    """One agent turn, read."""

    sentences: tuple[Sentence, ...]

    @cached_property
    def readable(self) -> tuple[Sentence, ...]:
        """The sentences that are speech to the persona."""
        return tuple(s for s in self.sentences if not s.does(Act.UNREADABLE, Act.META))

    @property
    def legibility(self) -> float:
        """The share of the characters that can be read; 1 for an empty turn."""
        total = sum(len(s.text) for s in self.sentences)
        lost = sum(len(s.text) for s in self.sentences if s.does(Act.UNREADABLE))
        return 1.0 - lost / total if total else 1.0

    @cached_property
    def is_list(self) -> bool:
        """True if it is a list of words rather than speech ("Onset? Nights? Fever? …"): nobody could answer it."""
        lines = [s.text for s in self.sentences]
        pieces = [piece for text in lines for piece in text.split(",")]
        return _are_scraps(lines, LISTED_SENTENCES) or _are_scraps(pieces, LISTED_PIECES)

    def any(self, *acts: Act) -> bool:
        """True if any sentence does one of these."""
        return any(s.does(*acts) for s in self.sentences)

    def all_of(self, *acts: Act) -> tuple[str, ...]:
        """The texts of the readable sentences that do one of these."""
        return tuple(s.text for s in self.readable if s.does(*acts))


def _are_scraps(pieces: Iterable[str], least: int) -> bool:
    lengths = [len(piece.split()) for piece in pieces]
    scraps = [length for length in lengths if length <= SCRAP_WORDS]
    return len(scraps) >= least and 2 * sum(scraps) >= sum(lengths)
