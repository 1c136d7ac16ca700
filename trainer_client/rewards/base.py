"""The interface of a reward: a conversation in, a number in [0, 1] with its components out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

Conversation = Sequence[Mapping[str, Any]]
"""Messages with `role` (`assistant` is the agent, `user` the other side) and `content`."""


class RewardError(RuntimeError):
    """A conversation could not be scored. A failure is never a number."""


@dataclass(frozen=True)
class RewardResult:
    """The reward of one conversation."""

    reward: float
    """In [0, 1]."""
    components: Mapping[str, float] = field(default_factory=dict)
    """The numbers that the reward is made of, by name."""
    reason: str = ""
    """One line for people; empty where there is nothing to say."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.reward) and 0.0 <= self.reward <= 1.0):
            raise ValueError(f"a reward is a number from 0 to 1, not {self.reward!r}")


@dataclass(frozen=True)
class RewardContext:
    """The facts known of a conversation beside its messages."""

    server_reward: float | None = None
    """The server's reward of the conversation so far, where a server plays it."""
    server_scores: Mapping[str, float] = field(default_factory=dict)
    """The server's scores by dimension."""
    collection: str | None = None
    scenario: str | None = None


NO_CONTEXT = RewardContext()


class RewardFunction(ABC):
    """Scores conversations. Subclasses implement `score`, and `score_many` where a batch is cheaper."""

    name: str = "reward"
    version: str = "1"
    """Changes whenever the numbers may; part of the scoring version of a server that uses the reward as a judge."""

    @abstractmethod
    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation.

        Raises:
            RewardError: the conversation could not be scored.
        """

    def score_many(
        self, conversations: Sequence[Conversation], contexts: Sequence[RewardContext] | None = None
    ) -> list[RewardResult]:
        """Score conversations, in order."""
        known = contexts if contexts is not None else [NO_CONTEXT] * len(conversations)
        return [self.score(messages, context) for messages, context in zip(conversations, known, strict=True)]

    def __call__(self, messages: Conversation) -> float:
        """The number alone."""
        return self.score(messages).reward


@runtime_checkable
class GroupReward(Protocol):
    """Scores the conversations of one group against each other; a number means nothing outside the group."""

    def score_group(self, conversations: Sequence[Conversation]) -> list[RewardResult]:
        """Score the conversations of a group, in order."""
        ...


Scored = float | RewardResult


class FunctionReward(RewardFunction):
    """A plain function from messages to a number or a `RewardResult`."""

    def __init__(self, function: Callable[[Conversation], Scored], name: str | None = None) -> None:
        self.name = name or str(getattr(function, "__name__", "reward"))
        self._function = function

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation with the function."""
        scored = self._function(messages)
        return scored if isinstance(scored, RewardResult) else RewardResult(float(scored))


def as_reward(value: RewardFunction | Callable[[Conversation], Scored]) -> RewardFunction:
    """A reward of a reward or of a plain function; raises TypeError for anything else."""
    if isinstance(value, RewardFunction):
        return value
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"a reward is a RewardFunction or a function of messages, not {value!r}")
    return FunctionReward(value)


def turns_of(messages: Conversation, role: str) -> list[str]:
    """The texts that one side says, in order."""
    return [str(message.get("content") or "") for message in messages if message.get("role") == role]
