"""Labels of single criteria: what the judges decided, what people say of it, and rows for a calibration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from trainer_client.wire.base import RequestModel, ResponseModel, Reward

Worth = Literal["earns", "costs", "caps"]


class JudgedCriterion(ResponseModel):
    """A criterion and its verdict. What it asks for is its author's and not told."""

    criterion: str
    """Dimension and place in it: `D1_Rapport.2`."""
    dimension: str
    worth: Worth
    status: str
    """`met`, `partial`, `unmet`, or `abstained` if no judge could decide."""
    value: float | None = None
    judge: str
    quotes: list[str]
    """What the judge cited."""


class CriteriaResponse(ResponseModel):
    """Answer of GET /criterion-labels/criteria: what can be labelled in a conversation."""

    conversation_id: str
    reward: Reward
    scoring_version: str
    data: list[JudgedCriterion]
    request_id: str


class CriterionLabelRequest(RequestModel):
    """POST /criterion-labels: whether a stored conversation meets a criterion, as a person sees it."""

    conversation_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """`ep_…` or `ev_…`."""
    criterion: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    met: bool
    quote: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    """Words of the conversation that show it."""
    labeller: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    """A name for who says it; use one that is nobody's own."""
    note: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None


class CriterionLabel(ResponseModel):
    """A stored label, beside what the judges had decided."""

    id: str
    conversation_id: str
    collection_slug: str
    scenario_slug: str
    criterion: str
    dimension: str
    worth: Worth
    met: bool
    quote: str | None = None
    labeller: str | None = None
    note: str | None = None
    status: str
    value: float | None = None
    judge: str
    reward: Reward
    scoring_version: str
    created_at: str


class CriterionLabelResponse(CriterionLabel):
    """Answer of POST /criterion-labels."""

    request_id: str


class CriterionLabelList(ResponseModel):
    """Answer of GET /criterion-labels."""

    data: list[CriterionLabel]
    next_cursor: str | None = None
    request_id: str


class CalibrationRow(ResponseModel):
    """A line of GET /criterion-labels/export, as `labs calibrate` takes it."""

    reward: Reward
    """Of the whole conversation."""
    label: Annotated[int, Field(ge=0, le=1)]
    """1 if a person says what speaks for the agent: that it met what earns, or not what costs or caps."""
    group: str
    """The conversation."""
    scoring_version: str
    criterion: str
    status: str
    value: float | None = None
    met: bool
    quote: str | None = None
    labeller: str | None = None


class CalibrationRows(ResponseModel):
    """The export that GET /criterion-labels/export streams."""

    rows: list[CalibrationRow]
    text: str
    """The file as it came: write it to a `.jsonl`."""
