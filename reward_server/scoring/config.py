"""The configuration of a request's reward: criterion families, the safety gate, a composite, caution.

The domain's form of the wire's `reward_config`. Weights are relative, so they are scaled to a largest of 1.
A family with weight 0 does not run at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from reward_server.errors import FieldProblem, InvalidRewardConfig
from reward_server.scoring.compose import ScoringComposite, composite_of
from scenarios.schema import Family
from trainer_client import wire

_ONLY_EVALUATIONS = "A calibrated reward is part of the answers of /evaluate and /batch/evaluate alone."


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Weights by family, largest 1, whether the safety gate is skipped, and who is heard."""

    weights: Mapping[Family, float] = field(default_factory=lambda: dict.fromkeys(Family, 1.0))
    skip_safety_gate: bool = False
    composite: ScoringComposite | None = None
    """Which judges make up the reward; None leaves it to the scenario."""
    risk_aversion: float = 0.0
    """How many standard deviations the reward is cut by."""
    calibration: str | None = None
    """Whose scale the reward is shown on, too; changes no reward."""

    @property
    def is_plain(self) -> bool:
        """True if the reward is the one that everybody gets who asks for nothing."""
        return replace(self, calibration=None) == PLAIN

    def runs(self, family: Family) -> bool:
        """True if criteria of the family are decided at all."""
        return self.weights[family] > 0.0


PLAIN = RewardConfig()
"""What everybody gets who asks for nothing."""


def read_config(given: wire.RewardConfig | Mapping[str, Any] | None) -> RewardConfig:
    """The config of a request; `InvalidRewardConfig` if weights are empty, all zero, negative or unknown.

    Whether this server has the judges of a composite is for the scorer to say (`Scorer.check`).
    """
    if given is None:
        return PLAIN
    parsed = given if isinstance(given, wire.RewardConfig) else _parsed(given)
    composite = None if parsed.composite is None else composite_of(parsed.composite)
    plain = RewardConfig(
        skip_safety_gate=parsed.skip_safety_gate,
        composite=composite,
        risk_aversion=parsed.risk_aversion,
        calibration=parsed.calibration,
    )
    if parsed.quality_weights is None:
        return plain
    weights = {family: float(getattr(parsed.quality_weights, family.value)) for family in Family}
    largest = max(weights.values())
    if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights.values()):
        raise _invalid("Weights must be finite and not negative.")
    if largest <= 0.0:
        raise _invalid("At least one weight must be greater than 0.")
    scaled = {family: weight / largest for family, weight in weights.items()}
    return replace(plain, weights=scaled)


def without_calibration(config: RewardConfig) -> RewardConfig:
    """The same config; `InvalidRewardConfig` where the answer has no place for a calibrated reward."""
    if config.calibration is not None:
        raise InvalidRewardConfig(errors=[FieldProblem(("reward_config", "calibration"), _ONLY_EVALUATIONS)])
    return config


def _parsed(given: Mapping[str, Any]) -> wire.RewardConfig:
    try:
        return wire.RewardConfig.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_input=False)
        problems = [FieldProblem(("reward_config", *e["loc"]), e["msg"].removeprefix("Value error, ")) for e in found]
        raise InvalidRewardConfig(errors=problems) from None


def _invalid(message: str) -> InvalidRewardConfig:
    return InvalidRewardConfig(errors=[FieldProblem(("reward_config", "quality_weights"), message)])
