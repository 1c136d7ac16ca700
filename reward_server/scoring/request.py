"""One transcript to be scored: what every door hands to the scorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from reward_server.scoring.config import RewardConfig
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One transcript to be scored under one scenario."""

    collection: str
    scenario: str
    transcript: Transcript
    config: RewardConfig = field(default_factory=RewardConfig)
    lab_id: str = "offline"
    """Who pays for what is asked about it."""
    lent: SealedScenario | None = field(default=None, repr=False)
    """Of one that is not in the library: kept until it is scored, since the vault only lends it."""


Read: TypeAlias = Callable[[], ScoreRequest]
"""Gives a request in a scoring thread, where its conversation may be read; what it raises is the outcome."""
