"""Judges of a whole conversation: one number with its uncertainty, instead of a verdict per criterion.

The learned reward model is one, plug-ins may be others. A composite reward combines their estimates with the
rubric's reward. An estimate is computed in the scoring threads and depends on the case alone, never on the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reward_server.judges.base import Case

REWARD_MODEL = "reward_model"
"""What composites call the active learned model."""
CLASSIFIER = "classifier"
"""What they call the sequence classifier of the settings."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The number that a judge puts on a whole conversation, with its uncertainty."""

    value: float
    """In [0, 1]."""
    epistemic: float | None = None
    """Standard deviation from not having seen enough data; None where it is not known, never 0 for that."""
    noise: float | None = None
    """Standard deviation of the labels themselves; more data does not lower it."""
    dimensions: Mapping[str, float] = field(default_factory=dict)
    """By dimension name, in [0, 1]; empty where the judge has no such heads."""


class ConversationJudge(Protocol):
    """Puts a number on whole conversations; blocking, thread-safe, deterministic."""

    @property
    def name(self) -> str:
        """The name that composites use: `reward_model`, or a plug-in's name."""

    @property
    def version(self) -> str:
        """Changes whenever its estimates may; part of the scoring version."""

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        """One estimate per case, in order.

        Raises:
            JudgeFailed: no estimate can be given; never a constant instead.
        """
