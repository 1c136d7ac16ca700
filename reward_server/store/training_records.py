"""Records of the store of training runs: the runs, and the metrics that their learners wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reward_server.store.records import JsonObject


class RunStatus(StrEnum):
    """The status of a run; the last three are final until somebody resumes it (a complete one stays complete)."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    """Somebody asked it to stop: the learner ends after the update that it is at."""
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


OPEN_RUNS = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRunRow:
    """A run of the learner. The job that does it has the same id."""

    training_run_id: str
    lab_id: str
    status: RunStatus
    name: str | None
    config: JsonObject = field(repr=False)
    """As it was given: its paths are not those of the server."""
    client_metadata: JsonObject | None = field(repr=False)
    collections: Sequence[str] | None = None
    """What the key that started it might use; None: all."""
    step: int = 0
    """Updates that are done."""
    steps: int
    """Updates of the whole run."""
    reward: float | None = None
    """Mean of the last update's episodes."""
    held_out_reward: float | None = None
    """Mean of the last evaluation."""
    error: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """True if it waits or runs."""
        return self.status in OPEN_RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One record of a run's metrics; a step has at most one of each kind."""

    step: int
    kind: str
    record: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class MetricPlace:
    """A record that was read already: the next ones are of its step and later kinds, and of later steps."""

    step: int
    kind: str = ""
    """Empty: all of the step were read."""
