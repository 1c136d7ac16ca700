"""Says how much of a reward whoever asks is told: the rule that every scorer is built with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored


class DisclosurePolicy(Protocol):
    """Decides what whoever asks may be told."""

    async def refused(self, requests: Sequence[ScoreRequest | None]) -> dict[int, Unscored]:
        """Those of the requests, by their place, that get no reward."""

    def told(self, request: ScoreRequest | None, outcome: Scored | Unscored) -> Scored | Unscored:
        """The outcome as it may be told."""


class FullDisclosure:
    """Tells everything: for commands of an operator, who has the rubrics."""

    async def refused(self, requests: Sequence[ScoreRequest | None]) -> dict[int, Unscored]:
        """None of them."""
        return {}

    def told(self, request: ScoreRequest | None, outcome: Scored | Unscored) -> Scored | Unscored:
        """The outcome as it is."""
        return outcome


FULL_DISCLOSURE: DisclosurePolicy = FullDisclosure()
