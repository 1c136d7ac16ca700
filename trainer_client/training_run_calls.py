"""The calls about training runs, as `client.training_runs` has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer_client.calls import Call, checked, new_key, post, query_of, segment
from trainer_client.methods import method, pages_of
from trainer_client.wire import (
    TrainingMetric,
    TrainingMetrics,
    TrainingRunList,
    TrainingRunRequest,
    TrainingRunResponse,
    TrainingRunStatus,
    TrainingRunSummary,
)


class TrainingRunCalls:
    """Runs of the bundled learner on the server."""

    @method
    def start(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[TrainingRunResponse]:
        """Start the learner; `config` is its TOML file as an object. Needs an operator's key."""
        request = checked(
            TrainingRunRequest,
            config=None if config is None else dict(config),
            name=name,
            metadata=None if metadata is None else dict(metadata),
        )
        return post("/training-runs", request, TrainingRunResponse, idempotency_key)

    @pages_of(TrainingRunSummary)
    def list(
        self, *, limit: int | None = None, cursor: str | None = None, status: TrainingRunStatus | None = None
    ) -> Call[TrainingRunList]:
        """The lab's runs, newest first."""
        query = query_of(limit=limit, cursor=cursor, status=status)
        return Call("GET", "/training-runs", TrainingRunList, query=query)

    @method
    def get(self, training_run_id: str) -> Call[TrainingRunResponse]:
        """Return the state of a run."""
        return Call("GET", f"/training-runs/{segment(training_run_id)}", TrainingRunResponse)

    @pages_of(TrainingMetric)
    def metrics(
        self, training_run_id: str, *, after: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[TrainingMetrics]:
        """Return the learner's metrics after a step, oldest first."""
        query = query_of(after=after, limit=limit, cursor=cursor)
        return Call("GET", f"/training-runs/{segment(training_run_id)}/metrics", TrainingMetrics, query=query)

    @method
    def delete(self, training_run_id: str) -> Call[TrainingRunResponse]:
        """Delete a run that has ended, with its checkpoints."""
        return Call("DELETE", f"/training-runs/{segment(training_run_id)}", TrainingRunResponse)

    @method
    def stop(self, training_run_id: str) -> Call[TrainingRunResponse]:
        """Stop a run after the update it is at, with a checkpoint."""
        path = f"/training-runs/{segment(training_run_id)}/stop"
        return Call("POST", path, TrainingRunResponse, idempotency_key=new_key())

    @method
    def resume(self, training_run_id: str) -> Call[TrainingRunResponse]:
        """Continue a run that was stopped or that failed, from its newest checkpoint."""
        path = f"/training-runs/{segment(training_run_id)}/resume"
        return Call("POST", path, TrainingRunResponse, idempotency_key=new_key())
