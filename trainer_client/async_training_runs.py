"""`training_runs` of the asynchronous client: start, look, follow, stop, resume.

`training_runs.py`, the synchronous twin, is made from this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainer_client import training_run_calls
from trainer_client.async_jobs import AsyncSend
from trainer_client.paging import AsyncPages
from trainer_client.transport import AsyncSleep
from trainer_client.wire import TrainingMetric, TrainingRunResponse, TrainingRunStatus, TrainingRunSummary

OPEN = ("queued", "running", "stopping")


class AsyncTrainingRuns:
    """Runs of the bundled learner on the server: `client.training_runs`."""

    def __init__(self, send: AsyncSend, sleep: AsyncSleep) -> None:
        self._send = send
        self._sleep = sleep

    async def start(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> TrainingRunResponse:
        """Start the learner; `config` is its TOML file as an object. Needs an operator's key."""
        call = training_run_calls.start(config, name=name, metadata=metadata, idempotency_key=idempotency_key)
        return await self._send(call)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, status: TrainingRunStatus | None = None
    ) -> AsyncPages[TrainingRunSummary]:
        """The lab's runs, newest first."""
        call = training_run_calls.runs(limit=limit, cursor=cursor, status=status)
        return AsyncPages[TrainingRunSummary].of(self._send, call)

    async def get(self, training_run_id: str) -> TrainingRunResponse:
        """How a run stands."""
        return await self._send(training_run_calls.run(training_run_id))

    def metrics(
        self, training_run_id: str, *, after: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[TrainingMetric]:
        """What the learner measured after a step, oldest first."""
        call = training_run_calls.metrics(training_run_id, after=after, limit=limit, cursor=cursor)
        return AsyncPages[TrainingMetric].of(self._send, call)

    async def wait(
        self,
        training_run_id: str,
        *,
        on_progress: Callable[[TrainingRunResponse], None] | None = None,
        poll_s: float = 1.0,
    ) -> TrainingRunResponse:
        """The run once it is over; any process may wait for it, as often as it likes."""
        while True:
            run = await self.get(training_run_id)
            if on_progress is not None:
                on_progress(run)
            if run.status not in OPEN:
                return run
            await self._sleep(poll_s)

    async def stop(self, training_run_id: str) -> TrainingRunResponse:
        """Stop a run after the update it is at, with a checkpoint."""
        return await self._send(training_run_calls.moved(training_run_id, "stop"))

    async def resume(self, training_run_id: str) -> TrainingRunResponse:
        """Continue a run that was stopped or that failed, from its newest checkpoint."""
        return await self._send(training_run_calls.moved(training_run_id, "resume"))

    async def delete(self, training_run_id: str) -> TrainingRunResponse:
        """Delete a run that has ended, with its checkpoints."""
        return await self._send(training_run_calls.delete(training_run_id))
