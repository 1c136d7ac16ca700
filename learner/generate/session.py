"""The interface of engines to a rollout: conversations that they continue, turn after turn, in one batch.

A `GenerationSession` holds the conversations of one wave. Each `step` gives the new ids of every conversation
that goes on (one left out is over) and gets the policy's next turn for each. An engine must return
the log-probabilities of the very distribution it sampled from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from learner.types import Segment


@dataclass(frozen=True)
class Completion:
    """One turn of the policy: its ids, their log-probabilities, and whether it ended by itself."""

    ids: tuple[int, ...]
    logp: tuple[float, ...]
    ended: bool
    support: tuple[tuple[int, ...], ...] | None = None
    """The tokens that could be drawn at each place, where some were left out."""

    def segment(self) -> Segment:
        """As a trajectory keeps it."""
        return Segment(self.ids, self.logp, support=self.support)


@dataclass(frozen=True)
class Continuation:
    """The tokens that one conversation gets before the policy speaks, and the randomness of that turn."""

    ids: Sequence[int]
    noise: np.random.SeedSequence
    fresh: bool = False
    """`ids` are the whole conversation rendered anew; what the engine kept of it is void."""


class GenerationSession(Protocol):
    """The conversations of one wave."""

    def step(self, continuations: Mapping[int, Continuation]) -> dict[int, Completion]:
        """Continue these conversations (by number); the others are over."""
        ...


class Generator(Protocol):
    """Starts sessions with the policy's present weights."""

    @property
    def context(self) -> int | None:
        """Longest conversation in tokens, the next turn included. None: no limit."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest turn."""
        ...

    def start(self) -> GenerationSession:
        """A session without conversations."""
        ...
