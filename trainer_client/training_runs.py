"""`training_runs` of the synchronous client: start, look, follow, stop, resume.

Made from `async_training_runs.py` by `unasync`: edit that one.
"""

from __future__ import annotations

from collections.abc import Callable

from trainer_client.methods import CallGroup, SyncCaller
from trainer_client.training_run_calls import TrainingRunCalls
from trainer_client.transport import SyncSleep
from trainer_client.wire import TrainingRunResponse

OPEN = ("queued", "running", "stopping")


class TrainingRunsClient(TrainingRunCalls, CallGroup):
    """Runs of the bundled learner on the server: `client.training_runs`."""

    def __init__(self, client: SyncCaller, sleep: SyncSleep) -> None:
        super().__init__(client)
        self._sleep = sleep

    def wait(
        self,
        training_run_id: str,
        *,
        on_progress: Callable[[TrainingRunResponse], None] | None = None,
        poll_s: float = 1.0,
    ) -> TrainingRunResponse:
        """The run once it is over; any process may wait for it, as often as it likes."""
        while True:
            run = self.get(training_run_id)
            if on_progress is not None:
                on_progress(run)
            if run.status not in OPEN:
                return run
            self._sleep(poll_s)
