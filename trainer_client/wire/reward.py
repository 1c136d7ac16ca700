"""The reward that a request asks for: weights of criterion families, and judges to combine."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from trainer_client.wire.base import MAX_COMPOSITE_PARTS, RequestModel


class QualityWeights(RequestModel):
    """Weights of the criterion families; those left out are 0 and their scorers do not run."""

    success_metrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    failure_metrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    best_practices: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    rubrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    discovery: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    output_similarity: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    decision_match: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0


class CompositePart(RequestModel):
    """One judge of a composite reward."""

    judge: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    """`rubric`, `reward_model`, or the name of a plug-in of the server."""
    weight: Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False, strict=True)] = 1.0
    """Relative to the other parts; `min` takes no notice of it, nor does the gate of `gated` have one."""
    at_least: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False, strict=True)] | None = None
    """Of the first part of `gated`: what it has to reach for the other parts to count."""


class Composite(RequestModel):
    """A reward put together from several judges. Caps and gates of the scenario hold for it as for any other."""

    combine: Literal["weighted_sum", "min", "product", "gated"]
    parts: Annotated[list[CompositePart], Field(min_length=1, max_length=MAX_COMPOSITE_PARTS)]

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        names = [part.judge for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError("each judge may be named once")
        gated = self.combine == "gated"
        if gated and len(self.parts) < 2:
            raise ValueError("`gated` needs a gate and at least one further part")
        if [part.at_least is not None for part in self.parts] != [gated, *[False] * (len(self.parts) - 1)]:
            raise ValueError("`at_least` belongs to the first part of `gated`, and nowhere else")
        if self.combine != "min" and not any(part.weight > 0 for part in self.parts[gated:]):
            raise ValueError("at least one weight must be greater than 0")
        return self


class RewardConfig(RequestModel):
    """The configuration of this request's reward. The server refuses empty or all-zero weights."""

    quality_weights: QualityWeights | None = None
    skip_safety_gate: Annotated[bool, Field(strict=True)] = False
    composite: Composite | None = None
    """Instead of the rubric's reward, or of the composite that the scenario itself asks for."""
    risk_aversion: Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False, strict=True)] = 0.0
    """k: the reward is cut by k standard deviations before caps. 400 where no judge knows its uncertainty."""
    calibration: Annotated[str, StringConstraints(pattern=r"^cal_[0-9a-f]{12}$")] | None = None
    """Adds `calibrated` to the metadata of evaluations; the reward itself never changes."""
