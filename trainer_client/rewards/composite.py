"""A reward made of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from trainer_client.rewards.base import (
    NO_CONTEXT,
    Conversation,
    RewardContext,
    RewardFunction,
    RewardResult,
    Scored,
    as_reward,
)

Part = RewardFunction | Callable[[Conversation], Scored]


class CompositeReward(RewardFunction):
    """Several rewards as one: their weighted mean, their weighted geometric mean (`product`), or the least of them.

    `components` holds each part's reward under its name, and the parts' own components as `part/component`. A part
    that fails fails the whole.
    """

    name = "composite"

    def __init__(
        self,
        parts: Mapping[str, Part] | Mapping[str, tuple[Part, float]] | Mapping[str, Part | tuple[Part, float]],
        combine: Literal["weighted_sum", "product", "min"] = "weighted_sum",
    ) -> None:
        """`parts`: rewards by name, each alone (weight 1) or with its weight."""
        pairs = {name: part if isinstance(part, tuple) else (part, 1.0) for name, part in parts.items()}
        self._parts = {name: (as_reward(part), float(weight)) for name, (part, weight) in pairs.items()}
        if not self._parts:
            raise ValueError("a composite needs at least one part")
        if any(not math.isfinite(weight) or weight < 0.0 for _, weight in self._parts.values()):
            raise ValueError("weights are finite and not negative")
        self._total = sum(weight for _, weight in self._parts.values())
        if self._total <= 0.0:
            raise ValueError("at least one weight is greater than 0")
        if combine not in ("weighted_sum", "product", "min"):
            raise ValueError(f"combine is weighted_sum, product or min, not {combine!r}")
        self.combine = combine
        self.version = ",".join(f"{name}:{part.version}" for name, (part, _) in self._parts.items())

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation with every part."""
        return self._combined({name: part.score(messages, context) for name, (part, _) in self._parts.items()})

    def score_many(
        self, conversations: Sequence[Conversation], contexts: Sequence[RewardContext] | None = None
    ) -> list[RewardResult]:
        """Score conversations, a batch for each part."""
        columns = {name: part.score_many(conversations, contexts) for name, (part, _) in self._parts.items()}
        return [
            self._combined({name: column[row] for name, column in columns.items()}) for row in range(len(conversations))
        ]

    def _combined(self, results: Mapping[str, RewardResult]) -> RewardResult:
        rewards = {name: result.reward for name, result in results.items()}
        shares = {name: weight / self._total for name, (_, weight) in self._parts.items()}
        if self.combine == "weighted_sum":
            reward = math.fsum(shares[name] * value for name, value in rewards.items())
        elif self.combine == "product":
            reward = math.prod(value ** shares[name] for name, value in rewards.items())
        else:
            reward = min(rewards.values())
        inner = {f"{name}/{key}": value for name, result in results.items() for key, value in result.components.items()}
        reasons = "; ".join(f"{name}: {result.reason}" for name, result in results.items() if result.reason)
        return RewardResult(min(1.0, max(0.0, reward)), {**rewards, **inner}, reasons)
