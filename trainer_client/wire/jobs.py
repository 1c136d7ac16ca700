"""Files and jobs: work in the background that survives restarts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from trainer_client.wire.base import RequestModel, ResponseModel, Role, SlugField
from trainer_client.wire.reward import RewardConfig

MAX_INLINE_ITEMS = 1000
JobType = Literal["evaluate", "compare", "rescore"]
JobStatus = Literal["queued", "running", "completed", "cancelled", "failed"]


class FileResponse(ResponseModel):
    """Answer of POST /files and GET /files/{id}."""

    file_id: str
    name: str
    size_bytes: int
    lines: int
    sha256: str
    created_at: str
    deleted: bool | None = None
    request_id: str | None = None


class FileList(ResponseModel):
    """Answer of GET /files."""

    data: list[FileResponse]
    next_cursor: str | None = None
    request_id: str


class JobRequest(RequestModel):
    """POST /jobs. Everything but `type` and the input is a default for the items that leave it out."""

    type: JobType
    file_id: str | None = None
    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_INLINE_ITEMS)] | None = None
    collection_slug: SlugField | None = None
    scenario_slug: SlugField | None = None
    agent_role: Role | None = None
    reward_config: RewardConfig | None = None
    source: Literal["episodes", "evaluations"] | None = None
    """Of `rescore`: all of the lab's, of one collection or scenario if those are given."""


class JobCounts(ResponseModel):
    """Items of a job by what became of them."""

    total: int
    done: int
    failed: int
    """The item itself cannot be served; its result says why."""
    dead: int
    """Every attempt failed for reasons that were not the item's; POST /jobs/{id}/retry takes them again."""
    remaining: int


class JobResponse(ResponseModel):
    """Answer of POST /jobs and GET /jobs/{id}."""

    job_id: str
    type: str
    status: JobStatus
    file_id: str
    counts: JobCounts
    progress: float
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    eta_s: float | None = None
    error: str | None = None
    request_id: str | None = None


class JobList(ResponseModel):
    """Answer of GET /jobs."""

    data: list[JobResponse]
    next_cursor: str | None = None
    request_id: str


class Change(ResponseModel):
    """How rewards differ between two scoring versions."""

    n: int
    changed: int
    mean_before: float
    mean_after: float
    mean_abs_delta: float
    rank_correlation: float | None = None
    """Spearman's; absent where one side has no order."""


class ChangedReward(ResponseModel):
    """One of the rewards that changed most."""

    episode_id: str | None = None
    evaluation_id: str | None = None
    before: float
    after: float
    delta: float


class JobReport(ResponseModel):
    """Answer of GET /jobs/{id}/report: of an `evaluate` job means, of `compare` winners, of `rescore` changes."""

    job_id: str
    type: str
    items: int
    errors: dict[str, int]
    """Items without a result, by code."""
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    winners: dict[str, int] | None = None
    mean_margin: float | None = None
    n: int | None = None
    changed: int | None = None
    mean_before: float | None = None
    mean_after: float | None = None
    mean_abs_delta: float | None = None
    rank_correlation: float | None = None
    versions_before: dict[str, int] | None = None
    versions_after: dict[str, int] | None = None
    by_scenario: dict[str, Change] | None = None
    largest: list[ChangedReward] | None = None
    request_id: str | None = None


class JobResult(ResponseModel):
    """One line of GET /jobs/{id}/results; the other fields are those of the call that the item stands for."""

    model_config = ConfigDict(extra="allow")

    index: int
    """The item's place in the input, from 0."""
    id: str | None = None
    status: Literal["success", "error"]
    reward: float | None = None
    message: str | None = None
    code: str | None = None
