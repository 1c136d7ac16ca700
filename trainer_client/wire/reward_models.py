"""GET /reward-models and POST /reward-models/{id}/activate."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from trainer_client.wire.base import ResponseModel


class HeldOutFigure(ResponseModel):
    """A figure with its 95 % interval, where there were enough dialogues for one."""

    value: float
    low: float | None = None
    high: float | None = None


class HeldOutFigures(ResponseModel):
    """The figures of a head, or of the order of pairs, on dialogues that the model was not trained on."""

    n: int
    r2: HeldOutFigure | None = None
    mse: HeldOutFigure | None = None
    spearman: HeldOutFigure | None = None
    pearson: HeldOutFigure | None = None
    pairwise: HeldOutFigure | None = None
    ece: HeldOutFigure | None = None


class RewardModelSummary(ResponseModel):
    """A learned reward model: trained once, never changed."""

    id: str
    active: bool
    """Whether composites call it as `reward_model`."""
    created_at: str
    data_hash: str
    labelled: int
    """Labelled conversations it was made from, held-out ones included."""
    pairs: int
    heads: list[str]
    """`score` for the whole, then dimensions."""
    encoder_version: str
    held_out: dict[str, HeldOutFigures]
    """By head; `pairs` for preference pairs."""


class RewardModelList(ResponseModel):
    """Reward models of the server, newest first."""

    data: list[RewardModelSummary] = Field(validation_alias=AliasChoices("data", "reward_models"))
    """Older servers send it under its older name alone."""
    reward_models: list[RewardModelSummary]
    """The same as `data`, under its older name."""
    next_cursor: str | None = None
    request_id: str


class RewardModelResponse(RewardModelSummary):
    """One reward model."""

    request_id: str
