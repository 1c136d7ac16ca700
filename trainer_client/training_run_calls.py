"""The calls of training runs as data, like those in `calls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer_client.calls import Call, checked, new_key, post, query_of, segment
from trainer_client.wire import (
    TrainingMetrics,
    TrainingRunList,
    TrainingRunRequest,
    TrainingRunResponse,
    TrainingRunStatus,
)


def start(
    config: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[TrainingRunResponse]:
    """POST /training-runs."""
    request = checked(
        TrainingRunRequest,
        config=None if config is None else dict(config),
        name=name,
        metadata=None if metadata is None else dict(metadata),
    )
    return post("/training-runs", request, TrainingRunResponse, idempotency_key)


def runs(
    *, limit: int | None = None, cursor: str | None = None, status: TrainingRunStatus | None = None
) -> Call[TrainingRunList]:
    """GET /training-runs."""
    query = query_of(limit=limit, cursor=cursor, status=status)
    return Call("GET", "/training-runs", TrainingRunList, query=query)


def run(training_run_id: str) -> Call[TrainingRunResponse]:
    """GET /training-runs/{id}."""
    return Call("GET", f"/training-runs/{segment(training_run_id)}", TrainingRunResponse)


def metrics(
    training_run_id: str, *, after: int | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[TrainingMetrics]:
    """GET /training-runs/{id}/metrics."""
    query = query_of(after=after, limit=limit, cursor=cursor)
    return Call("GET", f"/training-runs/{segment(training_run_id)}/metrics", TrainingMetrics, query=query)


def moved(training_run_id: str, action: str) -> Call[TrainingRunResponse]:
    """POST /training-runs/{id}/stop or /resume."""
    path = f"/training-runs/{segment(training_run_id)}/{action}"
    return Call("POST", path, TrainingRunResponse, idempotency_key=new_key())


def delete(training_run_id: str) -> Call[TrainingRunResponse]:
    """DELETE /training-runs/{id}."""
    return Call("DELETE", f"/training-runs/{segment(training_run_id)}", TrainingRunResponse)
