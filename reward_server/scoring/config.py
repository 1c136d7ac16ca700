"""How a request wants its reward put together: the weight of each criterion family, and the safety gate.

The domain's form of the wire's `reward_config`. Weights are relative, so they are scaled to a largest of 1.
A family with weight 0 does not run at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from reward_server.errors import FieldProblem, InvalidRewardConfig
from scenarios.schema import Family
from trainer_client import wire


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Weights by family, largest 1, and whether the safety gate is skipped."""

    weights: Mapping[Family, float] = field(default_factory=lambda: dict.fromkeys(Family, 1.0))
    skip_safety_gate: bool = False

    def runs(self, family: Family) -> bool:
        """Whether criteria of the family are decided at all."""
        return self.weights[family] > 0.0


def read_config(given: wire.RewardConfig | Mapping[str, Any] | None) -> RewardConfig:
    """The config of a request; `InvalidRewardConfig` if weights are empty, all zero, negative or unknown."""
    if given is None:
        return RewardConfig()
    parsed = given if isinstance(given, wire.RewardConfig) else _parsed(given)
    if parsed.quality_weights is None:
        return RewardConfig(skip_safety_gate=parsed.skip_safety_gate)
    weights = {family: float(getattr(parsed.quality_weights, family.value)) for family in Family}
    largest = max(weights.values())
    if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights.values()):
        raise _invalid("Weights must be finite and not negative.")
    if largest <= 0.0:
        raise _invalid("At least one weight must be greater than 0.")
    scaled = {family: weight / largest for family, weight in weights.items()}
    return RewardConfig(scaled, parsed.skip_safety_gate)


def _parsed(given: Mapping[str, Any]) -> wire.RewardConfig:
    try:
        return wire.RewardConfig.model_validate(given)
    except ValidationError as error:
        problems = [FieldProblem(("reward_config", *e["loc"]), e["msg"]) for e in error.errors(include_input=False)]
        raise InvalidRewardConfig(errors=problems) from None


def _invalid(message: str) -> InvalidRewardConfig:
    return InvalidRewardConfig(errors=[FieldProblem(("reward_config", "quality_weights"), message)])
