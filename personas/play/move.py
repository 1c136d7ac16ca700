"""Kinds of moves that a persona can make in a reply, before any word is chosen.

Only `TELL`, `VOLUNTEER` and `AGAIN` carry the content of a fact; everything else is manner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class MoveKind(StrEnum):
    """One thing a persona can do in a reply."""

    NOT_UNDERSTOOD = "not_understood"
    HURT = "hurt"
    TOO_MANY = "too_many"
    TELL = "tell"
    VOLUNTEER = "volunteer"
    AGAIN = "again"
    MISQUOTED = "misquoted"  # what it told, against a wrong summary of it
    NO_MORE = "no_more"  # near something told: it knows no more about it
    WORKS_OUT = "works_out"  # on numbers of the agent's
    TIRED = "tired"
    PARTIAL = "partial"
    WITHHELD = "withheld"
    BACKGROUND = "background"  # something beside the matter
    ANSWER = "answer"  # the authored answer about something it cannot know
    UNKNOWN = "unknown"
    ASKS_BACK = "asks_back"  # once: it cannot tell what is meant
    ALL_TOLD = "all_told"  # an open invitation, and nothing is left to tell
    REPLY = "reply"
    REPLY_EARLY = "reply_early"
    TOOL_REPLY = "tool_reply"
    AGREES = "agrees"  # to a proposal that the case says nothing about
    HESITATES = "hesitates"
    TAKES = "takes"  # a figure
    COUNTERS = "counters"  # with a figure of its own
    SETTLED = "settled"  # what was agreed, asked once more
    CORRECTS = "corrects"  # another figure than the one agreed
    EITHER = "either"  # leaves a choice to the agent
    CONSENTS = "consents"
    CONFIRMS = "confirms"  # what the agent repeats of it
    FOLLOWING = "following"
    NO_RUSH = "no_rush"
    GREETS = "greets"
    CHATS = "chats"
    WELCOMES = "welcomes"  # thanks and praise
    WARMED = "warmed"
    NUDGE = "nudge"
    WAIT = "wait"
    GOODBYE = "goodbye"  # the agent takes its leave with something promised, and not all
    FAREWELL = "farewell"
    PARTING = "parting"  # the agent ends the talk with nothing settled
    LEAVING = "leaving"


TELLING = frozenset({MoveKind.TELL, MoveKind.VOLUNTEER})
_LAST_WORDS = frozenset({MoveKind.FAREWELL, MoveKind.PARTING, MoveKind.LEAVING})
FACTUAL = frozenset(
    {
        MoveKind.TELL,
        MoveKind.WORKS_OUT,
        MoveKind.BACKGROUND,
        MoveKind.AGAIN,
        MoveKind.MISQUOTED,
        MoveKind.NO_MORE,
        MoveKind.PARTIAL,
        MoveKind.WITHHELD,
        MoveKind.CONFIRMS,
        MoveKind.ASKS_BACK,
    }
)
COMPLIANT = frozenset({MoveKind.AGREES, MoveKind.HESITATES, MoveKind.EITHER, MoveKind.FOLLOWING, MoveKind.UNKNOWN})
FIGURES = frozenset({MoveKind.TAKES, MoveKind.COUNTERS, MoveKind.SETTLED, MoveKind.CORRECTS})
REACTIONS = frozenset({MoveKind.REPLY, MoveKind.REPLY_EARLY, MoveKind.TOOL_REPLY})


@dataclass(frozen=True, slots=True)
class Move:
    """A kind and what it is about: a topic, a commitment or a tool."""

    kind: MoveKind
    about: str = ""
    nth: int = 0
    """How often the same was answered before."""
    late: bool = False
    """It was asked for earlier, and is told beside the answer to something else."""
    heard: str = ""
    """Of a reply to a commitment: what the agent said."""
    figure: str = ""
    """Of an answer to a figure: the persona's own, as it is written."""
    lines: tuple[str, ...] = ()
    """Of what it works out: the wordings, one of which is said."""
    plain: bool = False
    """Said at once, without a small word before it."""


@dataclass(frozen=True, slots=True, repr=False)
class SpokenMove:
    """A move, and the words that the engine has for it."""

    move: Move
    text: str


def worded(moves: Iterable[Move]) -> tuple[str, ...]:
    """The topics and the background that the moves put into words, for the first time or again."""
    kinds = TELLING | {MoveKind.AGAIN, MoveKind.MISQUOTED, MoveKind.BACKGROUND, MoveKind.WORKS_OUT}
    return tuple(move.about for move in moves if move.kind in kinds)


def held_back(moves: Iterable[Move]) -> tuple[str, ...]:
    """The topics that the moves put off."""
    return tuple(move.about for move in moves if move.kind in {MoveKind.PARTIAL, MoveKind.WITHHELD})


def disclosed(moves: Iterable[Move]) -> tuple[str, ...]:
    """The topics that the moves say for the first time."""
    return tuple(move.about for move in moves if move.kind in TELLING)


def ends(moves: Iterable[Move]) -> bool:
    """True if the persona ends the conversation with these moves.

    A first goodbye that comes early leaves the agent the chance to go on.
    """
    return any(move.kind in _LAST_WORDS or (move.kind is MoveKind.GOODBYE and move.nth > 0) for move in moves)
