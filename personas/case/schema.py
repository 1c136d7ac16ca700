"""The schema of a persona's private case: what it knows, when it says so, what it reacts to.

A case is the half of a scenario that the simulator plays. Everything in it is private until the
simulator says it aloud. The models are strict: an unknown key is an error. Cross-field rules that
need the whole case (unique ids, solvable gates) live in `personas.case.lint`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from personas.case.private import PrivateModel
from personas.case.skills import Skill

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


RAPPORT_CEILING = 3.0
"""The most trust that an agent can win."""

Needs = tuple[Identifier | tuple[Identifier, ...], ...]
"""Ids that must all hold; of a list among them, any one will do."""


def all_hold(needs: Needs, known: Container[str]) -> bool:
    """True if what is known meets the needs."""
    return not needs or all(
        need in known if isinstance(need, str) else any(one in known for one in need) for need in needs
    )


def named_in(needs: Needs) -> tuple[str, ...]:
    """Every id that the needs name."""
    return tuple(one for need in needs for one in ((need,) if isinstance(need, str) else need))


class Tier(StrEnum):
    """The way in which a fact becomes available to the agent."""

    VOLUNTEERED = "volunteered"  # in an opening line, or said at the first chance
    ASKED = "asked"  # only when a question matches it
    RAPPORT = "rapport"  # only when asked, and only once there is enough rapport
    UNKNOWN = "unknown"  # true in the case, but the persona cannot know it: never said


class Topic(PrivateModel):
    """Wordings that a question has to resemble to be about something. Shared by a collection or own."""

    asks: tuple[Line, ...] = ()
    """Example questions; a handful of varied wordings is enough."""
    keywords: tuple[Line, ...] = ()
    """Words that make a question more likely to be about this topic."""


class Condition(PrivateModel):
    """The condition that must hold before a matching question opens a fact."""

    rapport: float = Field(default=0.0, ge=0.0, le=5.0)
    requires: Needs = ()
    """Facts that must have been disclosed before; of a list among them, any one."""
    after_turn: int = Field(default=0, ge=0, le=50)
    """Closed during the first `after_turn` agent turns."""


class Fact(PrivateModel):
    """One atomic thing that is true in the case."""

    id: Identifier
    tier: Tier = Tier.ASKED
    says: tuple[Line, ...] = Field(min_length=1, max_length=6)
    """Complete wordings, each a sentence or two in the persona's voice; chosen by seed.
    For tier `unknown`: the hidden truth, used by the leak guard only."""
    again: Line | None = None
    """How it is put when asked a second time; default: a phrase of the temperament."""
    topic: Identifier | None = None
    """A topic of the collection whose asks and keywords this fact takes over."""
    label: Line | None = None
    """What the fact is about, in a few words; never said: to name it would give away that there is something."""
    asks: tuple[Line, ...] = ()
    keywords: tuple[Line, ...] = ()
    gate: Condition = Condition()
    partial: Line | None = None
    """Said when asked while the gate is closed; must not give the fact away."""
    answer: Line | None = None
    """Only for tier `unknown`: what the persona says when asked."""


class Denial(PrivateModel):
    """Something asked about that is not the case ("No, I have not lost weight."); can be elicited."""

    id: Identifier
    says: tuple[Line, ...] = Field(min_length=1, max_length=4)
    topic: Identifier | None = None
    label: Line | None = None
    asks: tuple[Line, ...] = ()
    keywords: tuple[Line, ...] = ()


class Later(PrivateModel):
    """The answer once the persona has said something else: a pupil who has understood knows the next step."""

    after: Needs = Field(min_length=1)
    says: tuple[Line, ...] = Field(min_length=1, max_length=6)


class Background(PrivateModel):
    """Something of the persona's life and wishes beside the matter: it makes an answer, and earns nothing."""

    id: Identifier
    asks: tuple[Line, ...] = Field(min_length=3)
    """What an agent says who is answered with it: questions, choices, offers."""
    says: tuple[Line, ...] = Field(min_length=1, max_length=6)
    after: Needs = ()
    """Facts or denials that must have been said before, because the answer takes them for known."""
    later: Later | None = None
    ends: bool = False
    """Whether the persona may take its leave with this answer, once it has what it came for."""
    repeats: bool = False
    """Whether it says again what it told last; the words here are for when it has told nothing."""


class Amount(PrivateModel):
    """The numbers that a commitment is about: of an offer, the price; others are another commitment's."""

    at_least: float | None = None
    at_most: float | None = None
    may_be_missing: bool = False
    """Whether the commitment can be made without a figure ("I'll refund both"); one that is named has to fit."""


class Commitment(PrivateModel):
    """Something the agent may say or promise that matters: advice, an offer, a hint, a diagnosis."""

    id: Identifier
    examples: tuple[Line, ...] = ()
    """What an agent says who makes it; a handful of varied wordings is enough."""
    amount: Amount | None = None
    """For offers: the sentence must name a number within these bounds."""
    also_questions: bool = False
    """Whether a question can make this commitment ("Shall we book you in for today?")."""
    after: Needs = ()
    """Facts or denials that must have been said before, or the persona answers `reply_early`."""
    reply: tuple[Line, ...] = ()
    reply_early: tuple[Line, ...] = ()


class Bargain(PrivateModel):
    """A figure that the persona haggles about. Its bounds are those of the commitment that closes it."""

    closes: Identifier
    """The commitment that is made with an acceptable figure; it has an `amount`."""
    asking: float = Field(gt=0)
    """The persona's first figure: above the bounds of who sells, below those of who buys."""
    unit: Line | None = None
    """What stands behind a figure ("cents", "a month")."""
    figures: tuple[Identifier, ...] = ()
    """Facts that are about the figure: asked for one that it keeps to itself, it names the figure that it stands at."""


class Ending(PrivateModel):
    """The moment when the persona has got what it came for: every group has a commitment that was heard."""

    goals: tuple[tuple[Identifier, ...], ...] = ()
    """All groups must be met; within a group any one commitment or final tool will do."""
    farewell: tuple[Line, ...] = ()
    """The persona's last line when its goals are met."""


Manner = Literal[
    "no_more",
    "withheld",
    "too_many",
    "hurt",
    "warmed",
    "following",
    "all_told",
    "agrees",
    "hesitates",
    "either",
    "consents",
    "confirms",
    "no_rush",
    "greets",
    "chats",
    "welcomes",
    "not_understood",
    "wait",
    "leaving",
    "parting",
    "goodbye",
    "counters",
    "takes",
    "settled",
    "corrects",
]
"""What a persona may say in words of its own: the names are those of a temperament's phrases."""


class PersonaCase(PrivateModel):
    """Everything the simulator needs to play one persona in one scenario."""

    name: Line
    role: Line
    """What the persona is to the agent: "patient", "customer", "student"."""
    temperaments: tuple[Slug, ...] = Field(min_length=1)
    """Temperaments this case may be played with; the first is the default."""
    openings: tuple[Line, ...] = Field(min_length=2, max_length=8)
    facts: tuple[Fact, ...] = Field(min_length=4, max_length=24)
    denials: tuple[Denial, ...] = ()
    commitments: tuple[Commitment, ...] = ()
    unknown: tuple[Line, ...] = Field(min_length=1)
    """Answers to questions about things the case does not cover; never invents anything."""
    nudges: tuple[Line, ...] = Field(min_length=1)
    """Said when the agent asks nothing and commits to nothing: keeps the talk going."""
    phrases: Mapping[Manner, Annotated[tuple[Line, ...], Field(min_length=2, max_length=8)]] = {}
    """Said instead of the phrases of any temperament: a child takes its leave in other words than a mechanic."""
    ending: Ending = Ending()
    bargain: Bargain | None = None
    skills: tuple[Skill, ...] = Field(default=(), max_length=12)
