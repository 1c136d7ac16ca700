"""`training_runs` of the asynchronous client: start, look, follow, stop, resume.

`training_runs.py`, the synchronous twin, is made from this file.
"""

from __future__ import annotations

from collections.abc import Callable

from trainer_client.methods import AsyncCaller, AsyncCallGroup
from trainer_client.training_run_calls import TrainingRunCalls
from trainer_client.transport import AsyncSleep
from trainer_client.wire import TrainingRunResponse

OPEN = ("queued", "running", "stopping")


class AsyncTrainingRunsClient(TrainingRunCalls, AsyncCallGroup):
    """Runs of the bundled learner on the server: `client.training_runs`."""

    def __init__(self, client: AsyncCaller, sleep: AsyncSleep) -> None:
        super().__init__(client)
        self._sleep = sleep

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
