"""`jobs` of the asynchronous client: upload, submit, wait, read results.

`jobs.py`, the synchronous twin, is made from this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainer_client import job_calls
from trainer_client.calls import AnswerT, Call, RewardConfigLike
from trainer_client.paging import AsyncPages
from trainer_client.transport import AsyncSleep
from trainer_client.wire import FileResponse, JobReport, JobResponse, JobResult, Role

OPEN = ("queued", "running")
RESULTS_AT_ONCE = 1000


class AsyncSend(Protocol):
    """Sends one call, retries included."""

    async def __call__(self, call: Call[AnswerT]) -> AnswerT:
        """The answer to a call."""
        ...


class AsyncJobs:
    """Work in the background: `client.jobs`."""

    def __init__(self, send: AsyncSend, sleep: AsyncSleep) -> None:
        self._send = send
        self._sleep = sleep

    async def upload(self, data: bytes | Path, name: str | None = None) -> FileResponse:
        """Store a JSONL file for jobs to read."""
        return await self._send(job_calls.upload(data, name))

    def files(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[FileResponse]:
        """The lab's files, newest first."""
        return AsyncPages[FileResponse].of(self._send, job_calls.files(limit=limit, cursor=cursor))

    async def delete_file(self, file_id: str) -> FileResponse:
        """Forget a file."""
        return await self._send(job_calls.delete_file(file_id))

    async def submit(
        self,
        job_type: str,
        *,
        file_id: str | None = None,
        items: Sequence[Mapping[str, Any]] | None = None,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        agent_role: Role | None = None,
        reward_config: RewardConfigLike | None = None,
        source: str | None = None,
        training: Mapping[str, Any] | None = None,
        calibration: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> JobResponse:
        """Queue a job over a file or over items; what items leave out is the job's.

        `training` and `calibration` are the options of those types: `TrainingOptions`, `CalibrationOptions`.
        """
        return await self._send(
            job_calls.submit(
                job_type,
                file_id=file_id,
                items=items,
                collection_slug=collection_slug,
                scenario_slug=scenario_slug,
                agent_role=agent_role,
                reward_config=reward_config,
                source=source,
                training=training,
                calibration=calibration,
                idempotency_key=idempotency_key,
            )
        )

    async def get(self, job_id: str) -> JobResponse:
        """How a job stands."""
        return await self._send(job_calls.job(job_id))

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[JobResponse]:
        """The lab's jobs, newest first."""
        return AsyncPages[JobResponse].of(self._send, job_calls.jobs(limit=limit, cursor=cursor))

    async def wait(
        self, job_id: str, *, on_progress: Callable[[JobResponse], None] | None = None, poll_s: float = 1.0
    ) -> JobResponse:
        """The job once it is over; any process may wait for it, as often as it likes."""
        while True:
            job = await self.get(job_id)
            if on_progress is not None:
                on_progress(job)
            if job.status not in OPEN:
                return job
            await self._sleep(poll_s)

    async def results(self, job_id: str, *, after: int = -1) -> AsyncIterator[JobResult]:
        """A line for every item that is finished, in the order of the input, beginning after an item."""
        while True:
            found = (await self._send(job_calls.results(job_id, after=after, limit=RESULTS_AT_ONCE))).data
            for line in found:
                after = line.index
                yield line
            if len(found) < RESULTS_AT_ONCE:
                return

    async def report(self, job_id: str) -> JobReport:
        """What the finished items come to."""
        return await self._send(job_calls.report(job_id))

    async def cancel(self, job_id: str) -> JobResponse:
        """Cancel a job; finished items stay."""
        return await self._send(job_calls.moved(job_id, "cancel"))

    async def resume(self, job_id: str) -> JobResponse:
        """Resume a cancelled job."""
        return await self._send(job_calls.moved(job_id, "resume"))

    async def retry(self, job_id: str) -> JobResponse:
        """Retry the dead items of a job."""
        return await self._send(job_calls.moved(job_id, "retry"))
