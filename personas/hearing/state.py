"""The memory of a persona between turns: an immutable record that survives a JSON round trip.

It holds ids, counts and digests, no line of the conversation. Its repr shows the turn only, because the ids
of facts are private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from personas.hearing.conversation import ConversationState


@dataclass(frozen=True, slots=True, repr=False)
class PersonaState:
    """The persona after `turn` agent turns."""

    turn: int = 0
    rapport: float = 0.0
    annoyance: float = 0.0
    """Patience spent so far."""
    said: Mapping[str, int] = field(default_factory=dict)
    """Topic -> the turn it was first said in; 0 is the opening."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """Topic -> in how many turns it was asked about."""
    asked_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Topic -> the meaningful words of the questions about it."""
    worded: Mapping[str, int] = field(default_factory=dict)
    """Topic -> how often the persona has told it; kept in play alone, for the choice of words."""
    held_back: Mapping[str, int] = field(default_factory=dict)
    """Topic -> how often the persona has put it off; kept in play alone, too."""
    empathy: tuple[str, ...] = ()
    """Sympathetic sentences already heard; none of them pays twice."""
    commitments: Mapping[str, int] = field(default_factory=dict)
    """Commitment -> the first turn it was made in, not counting early ones."""
    heard: Mapping[str, int] = field(default_factory=dict)
    """Commitment -> how often it was made in time."""
    early: Mapping[str, int] = field(default_factory=dict)
    """Commitment -> how often it was made too early."""
    tools: tuple[str, ...] = ()
    goals_met: int | None = None
    """The turn in which the last goal was met."""
    idle: int = 0
    """Agent turns in a row that asked and offered nothing."""
    puzzled: int = 0
    """Agent turns that made no sense or were off topic."""
    farewells: int = 0
    stories: int = 0
    """Open invitations so far."""
    wondered: tuple[str, ...] = ()
    """What the last turn may have asked about, where the persona did not understand it."""
    unanswered: tuple[str, ...] = ()
    """What the last turn asked for and the persona did not tell."""
    ended: bool = False
    lines: tuple[str, ...] = ()
    """Digests of the persona's own lines, and of its answers to commitments, so that it does not repeat one."""
    conversation: ConversationState = field(default_factory=ConversationState)
    """What was offered and agreed, and what the persona itself said last."""

    def __repr__(self) -> str:
        return f"<PersonaState: turn {self.turn}>"

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON types."""
        return {
            "turn": self.turn,
            "rapport": self.rapport,
            "annoyance": self.annoyance,
            "said": dict(self.said),
            "asked": dict(self.asked),
            "asked_as": {topic: list(gists) for topic, gists in self.asked_as.items()},
            "worded": dict(self.worded),
            "held_back": dict(self.held_back),
            "empathy": list(self.empathy),
            "commitments": dict(self.commitments),
            "heard": dict(self.heard),
            "early": dict(self.early),
            "tools": list(self.tools),
            "goals_met": self.goals_met,
            "idle": self.idle,
            "puzzled": self.puzzled,
            "farewells": self.farewells,
            "stories": self.stories,
            "wondered": list(self.wondered),
            "unanswered": list(self.unanswered),
            "ended": self.ended,
            "lines": list(self.lines),
            "conversation": self.conversation.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PersonaState:
        """The state that `to_json` wrote."""
        sequences = {key: tuple(data.get(key, ())) for key in ("empathy", "tools", "lines", "wondered", "unanswered")}
        gists = {topic: tuple(questions) for topic, questions in data.get("asked_as", {}).items()}
        kept = data.get("conversation")
        conversation = ConversationState.from_json(kept) if kept else ConversationState()
        return cls(**{**data, **sequences, "asked_as": gists, "conversation": conversation})
