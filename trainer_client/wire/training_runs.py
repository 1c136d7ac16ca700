"""Training runs: the bundled learner, started and stopped over HTTP, and what it measures meanwhile."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from trainer_client.wire.base import JsonObject, RequestModel, ResponseModel

TrainingRunStatus = Literal["queued", "running", "stopping", "complete", "stopped", "failed"]


class TrainingRunRequest(RequestModel):
    """POST /training-runs."""

    config: JsonObject = Field(default_factory=dict)
    """The learner's configuration, as in its TOML file: sections with keys. Empty: a tiny model, trained on a CPU."""
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    metadata: JsonObject | None = None
    """Returned as sent; at most 4 kB."""


class TrainingRunSummary(ResponseModel):
    """A training run."""

    training_run_id: str
    status: TrainingRunStatus
    """`stopping`: it was asked to stop, and the learner still finishes an update."""
    name: str | None = None
    step: int
    """Updates that are done."""
    steps: int
    """Updates of the whole run."""
    reward: float | None = None
    """Mean of the last update's episodes."""
    held_out_reward: float | None = None
    """Mean of the last evaluation."""
    error: str | None = None
    """Why it failed, in a line."""
    config: dict[str, Any]
    """As it was sent."""
    metadata: dict[str, Any] | None = None
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None


class TrainingRunResponse(TrainingRunSummary):
    """A training run that was asked for."""

    request_id: str


class TrainingRunList(ResponseModel):
    """Answer of GET /training-runs."""

    data: list[TrainingRunSummary]
    next_cursor: str | None = None
    request_id: str


class TrainingMetric(ResponseModel):
    """A record that the learner wrote: figures of an update (`train`) or of an evaluation (`eval`), by name."""

    model_config = ConfigDict(extra="allow")

    kind: str
    step: int


class TrainingMetrics(ResponseModel):
    """Answer of GET /training-runs/{id}/metrics."""

    data: list[TrainingMetric]
    next_cursor: str | None = None
    request_id: str


class TrainingRunEvent(TrainingRunSummary):
    """An event of GET /training-runs/{id}/events: the run, and the records since the last event."""

    metrics: list[TrainingMetric]
