"""Records of the store of jobs: uploaded files, jobs, and what became of their items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reward_server.store.records import JsonObject


class JobStatus(StrEnum):
    """The status of a job; the last three are final until somebody resumes or retries it.

    A job is `FAILED` when it is over and not one of its items has a result.
    """

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


OPEN = (JobStatus.QUEUED, JobStatus.RUNNING)
"""A job that workers take items of."""
TRAIN_POLICY = "train_policy"
"""The type of a job that is a training run, whose id it has; labs see the run alone."""


class ItemState(StrEnum):
    """The state of an item; items that nobody has begun have no row."""

    LEASED = "leased"
    WAITING = "waiting"
    """It failed in passing, or its worker stopped; it is taken again from `lease_until` on."""
    DONE = "done"
    FAILED = "failed"
    """The item itself cannot be served: it has an error and will always have it."""
    DEAD = "dead"
    """Every attempt failed for reasons that were not the item's: it may be retried."""


FINISHED = (ItemState.DONE, ItemState.FAILED, ItemState.DEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """An uploaded JSONL file; `lines` and `digest` are known when it is complete."""

    file_id: str
    lab_id: str
    name: str
    size_bytes: int
    lines: int
    digest: str
    is_complete: bool
    created_at: datetime
    collections: Sequence[str] | None = None
    """What the key that uploaded it might use; None: all."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive whole lines of a file."""

    first_line: int
    lines: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job, with how many of its items came to an end, and how."""

    job_id: str
    lab_id: str
    key_id: str
    type: str
    status: JobStatus
    file_id: str
    params: JsonObject = field(repr=False)
    collections: tuple[str, ...] | None
    """Those of the key that submitted it."""
    full_scores: bool
    scopes: tuple[str, ...]
    total: int
    next_index: int = 0
    """The first item that nobody has begun."""
    done: int = 0
    failed: int = 0
    dead: int = 0
    error: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    served_at: datetime | None = None
    """When a worker last took items of it."""
    rests_until: datetime | None = None
    """Nobody takes items of it before."""
    rests_for: str | None = None
    """The code of what its lab has used up."""

    @property
    def finished_items(self) -> int:
        """Items that came to an end."""
        return self.done + self.failed + self.dead

    @property
    def is_open(self) -> bool:
        """True if workers take items of it."""
        return self.status in OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Items of one job that a worker holds until a moment, under a token that nobody else has."""

    job: JobRow
    token: str
    attempts: dict[int, int]
    """By item, the number of this attempt, beginning with 1."""

    @property
    def indexes(self) -> list[int]:
        """The items, in order."""
        return sorted(self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    """The outcome of an item in an attempt."""

    index: int
    state: ItemState
    result: JsonObject | None = field(repr=False)
    """Its line of the results; None while it waits for another attempt."""
    not_before: datetime | None = None
    """When a waiting item may be taken again."""
