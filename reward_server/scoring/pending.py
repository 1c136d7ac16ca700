"""Conversations on their way to a reward: begun by a scoring thread, not yet heard by everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reward_server.judges.base import Case, Verdict
from reward_server.judges.cascade import OpenQuestion
from reward_server.scoring.compose import RUBRIC, ScoringComposite
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.estimates import JudgeSnapshot
from reward_server.scoring.gates import Gate
from reward_server.scoring.request import Read, ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from scenarios.schema import Criterion


@dataclass(frozen=True, slots=True)
class PendingScore:
    """A request whose computed verdicts are there and whose others are still to be asked for."""

    case: Case
    config: RewardConfig
    composite: ScoringComposite
    criteria: tuple[Criterion, ...]
    gates: tuple[Gate, ...]
    verdicts: Mapping[str, Verdict]
    questions: tuple[OpenQuestion, ...]
    scoring_version: str

    @property
    def waits(self) -> bool:
        """True if anybody is still to be heard."""
        return bool(self.questions) or self.composite.judges != (RUBRIC,)


@dataclass(frozen=True, slots=True, repr=False)
class StartedScoring:
    """A conversation that a scoring thread has begun with, for `finish`."""

    request: ScoreRequest | None
    """None where it could not be read."""
    snapshot: JudgeSnapshot
    texts: Sequence[str]
    """What has to be embedded before anything can be computed."""
    outcome: PendingScore | Scored | Unscored | None
    """What came of it; None where texts are missing."""
    seconds: float
    """What beginning took."""


Begin: TypeAlias = Callable[[Read], StartedScoring]
