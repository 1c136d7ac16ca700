"""State that holds a conversation together: what was offered and how it was taken, what was told last.

Part of `PersonaState`, immutable, and read back from JSON; a state stored before there was one has an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from personas.hearing.measures import Measured

__all__ = ["ConversationState", "OfferStatus", "OfferedFigure", "Party"]


class Party(StrEnum):
    """The party that made an offer."""

    AGENT = "agent"
    PERSONA = "persona"


class OfferStatus(StrEnum):
    """The state of an offer."""

    PROPOSED = "proposed"
    """Nobody has said yes or no: of the agent's, it came too early."""
    COUNTERED = "countered"
    """Not enough: the other side has named a figure of its own."""
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class OfferedFigure:
    """A figure on the table."""

    by: Party
    amount: float
    status: OfferStatus
    turn: int


@dataclass(frozen=True, slots=True)
class ConversationState:
    """The conversation after the turns so far."""

    offers: tuple[OfferedFigure, ...] = ()
    """The figures that were named, the latest last."""
    terms: tuple[str, ...] = ()
    """What else the agent offered, by number and unit ("5 year")."""
    told: tuple[str, ...] = ()
    """The topics that the last line told."""
    asked_back: int = 0
    """How often the persona asked what is meant. Kept in play alone."""

    given: tuple[Measured, ...] = ()
    """The numbers that the agent named last: what a task that goes on rests on."""

    @property
    def agreed(self) -> float | None:
        """The figure that both sides have accepted."""
        return next((offer.amount for offer in reversed(self.offers) if offer.status is OfferStatus.ACCEPTED), None)

    def last(self, party: Party) -> OfferedFigure | None:
        """The last offer of a side."""
        return next((offer for offer in reversed(self.offers) if offer.by is party), None)

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON types."""
        return {
            "offers": [asdict(offer) for offer in self.offers],
            "terms": list(self.terms),
            "told": list(self.told),
            "asked_back": self.asked_back,
            "given": [quantity.to_json() for quantity in self.given],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ConversationState:
        """The state that `to_json` wrote."""
        offers = (
            OfferedFigure(Party(offer["by"]), offer["amount"], OfferStatus(offer["status"]), offer["turn"])
            for offer in data["offers"]
        )
        given = tuple(map(Measured.from_json, data.get("given", ())))
        return cls(tuple(offers), tuple(data["terms"]), tuple(data["told"]), data["asked_back"], given)
