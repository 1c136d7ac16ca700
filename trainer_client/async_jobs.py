"""`jobs` of the asynchronous client: upload, submit, wait, read results.

`jobs.py`, the synchronous twin, is made from this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from trainer_client.job_calls import JobCalls, results_of
from trainer_client.methods import AsyncCaller, AsyncCallGroup
from trainer_client.transport import AsyncSleep
from trainer_client.wire import JobResponse, JobResult

OPEN = ("queued", "running")
RESULTS_AT_ONCE = 1000


class AsyncJobsClient(JobCalls, AsyncCallGroup):
    """Work in the background: `client.jobs`."""

    def __init__(self, client: AsyncCaller, sleep: AsyncSleep) -> None:
        super().__init__(client)
        self._sleep = sleep

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
            lines = (await self._send(results_of(job_id, after=after, limit=RESULTS_AT_ONCE))).data
            for line in lines:
                after = line.index
                yield line
            if len(lines) < RESULTS_AT_ONCE:
                return
