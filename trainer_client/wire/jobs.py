"""Files and jobs: work in the background that survives restarts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from trainer_client.wire.base import RequestModel, ResponseModel, Role, SlugField
from trainer_client.wire.reward import RewardConfig

MAX_INLINE_ITEMS = 1000
JobType = Literal["evaluate", "compare"]
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
