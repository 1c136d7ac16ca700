"""GET /calibrations: on which other scales this server can show a reward."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from trainer_client.wire.base import ResponseModel


class CalibrationError(ResponseModel):
    """An expected calibration error with its 95 % interval."""

    value: float
    low: float
    high: float


class CalibratedReward(ResponseModel):
    """One named reward of a calibration: `reward` is the one that evaluations answer with, others are parts of a
    composite by the name of their judge."""

    name: str
    ece_before: CalibrationError | None = None
    ece_after: CalibrationError | None = None
    """Over rows that the map had not seen; absent where there were no labels."""


class CalibrationCombination(ResponseModel):
    """The combination of several calibrated rewards into one number."""

    weights: dict[str, float]
    """By the name of the reward; they add up to 1."""
    ece_after: CalibrationError


class CalibrationSummary(ResponseModel):
    """A calibration: fitted once, never changed."""

    id: str
    method: Literal["temperature", "isotonic", "z_score", "min_max", "percentile"]
    uses_labels: bool
    """False: it only rescales, and says nothing about how good a conversation is."""
    n: int
    """Rows or pairs it was fitted on."""
    scoring_version: str | None = None
    """Of the rewards it was fitted on; it is refused for other rubrics."""
    reward_model_id: str | None = None
    """Instead, where it was fitted on the rewards of a learned model: it is for those, while that model is active."""
    data_hash: str
    range: tuple[float, float]
    """What calibrated numbers lie in."""
    rewards: list[CalibratedReward]
    combination: CalibrationCombination | None = None
    created_at: str


class CalibrationResponse(CalibrationSummary):
    """One calibration."""

    request_id: str


class CalibrationList(ResponseModel):
    """Answer of GET /calibrations."""

    data: list[CalibrationSummary] = Field(validation_alias=AliasChoices("data", "calibrations"))
    """Older servers send it under its older name alone."""
    calibrations: list[CalibrationSummary]
    """The same as `data`, under its older name."""
    next_cursor: str | None = None
    request_id: str
