"""The calls about files and jobs, as `client.jobs` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from trainer_client.calls import Call, RewardConfigLike, checked, post, query_of, segment
from trainer_client.errors import MalformedAnswer
from trainer_client.methods import method, pages_of
from trainer_client.wire import (
    FileList,
    FileResponse,
    JobList,
    JobReport,
    JobRequest,
    JobResponse,
    JobResult,
    Role,
)


class JobResults(BaseModel):
    """Some lines of the results of a job."""

    data: list[JobResult]


@dataclass(frozen=True)
class LinesCall(Call[JobResults]):
    """A call that is answered with lines of JSON."""

    def read(self, body: bytes, request_id: str | None) -> JobResults:
        """Parse a success; anything but lines of results is a `MalformedAnswer`."""
        try:
            return JobResults.model_validate({"data": [json.loads(line) for line in body.splitlines()]})
        except ValueError as error:
            raise MalformedAnswer(
                "The results of the job are not what the contract says.",
                code="malformed_answer",
                status=200,
                request_id=request_id,
            ) from error


class JobCalls:
    """Work in the background."""

    @method
    def upload(self, data: bytes | Path, name: str | None = None) -> Call[FileResponse]:
        """Store a JSONL file for jobs to read."""
        if isinstance(data, Path):
            name, data = name or data.name, data.read_bytes()
        name = name or "upload.jsonl"
        return Call("POST", "/files", FileResponse, body=data, query=query_of(name=name))

    @pages_of(FileResponse)
    def files(self, *, limit: int | None = None, cursor: str | None = None) -> Call[FileList]:
        """The lab's files, newest first."""
        return Call("GET", "/files", FileList, query=query_of(limit=limit, cursor=cursor))

    @method
    def delete_file(self, file_id: str) -> Call[FileResponse]:
        """Forget a file."""
        return Call("DELETE", f"/files/{segment(file_id)}", FileResponse)

    @method
    def submit(
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
        agreement: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[JobResponse]:
        """Queue a job over a file or over items; what items leave out is the job's.

        `training`, `calibration` and `agreement` are the options of types: `TrainingOptions`, `CalibrationOptions`,
        `AgreementOptions`.
        """
        request = checked(
            JobRequest,
            type=job_type,
            file_id=file_id,
            items=None if items is None else [dict(item) for item in items],
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            agent_role=agent_role,
            reward_config=reward_config,
            source=source,
            training=training,
            calibration=calibration,
            agreement=agreement,
        )
        return post("/jobs", request, JobResponse, idempotency_key)

    @method
    def get(self, job_id: str) -> Call[JobResponse]:
        """Return the state of a job."""
        return Call("GET", f"/jobs/{segment(job_id)}", JobResponse)

    @pages_of(JobResponse)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Call[JobList]:
        """The lab's jobs, newest first."""
        return Call("GET", "/jobs", JobList, query=query_of(limit=limit, cursor=cursor))

    @method
    def report(self, job_id: str) -> Call[JobReport]:
        """Sum up the finished items."""
        return Call("GET", f"/jobs/{segment(job_id)}/report", JobReport)

    @method
    def cancel(self, job_id: str) -> Call[JobResponse]:
        """Cancel a job; finished items stay."""
        return Call("POST", f"/jobs/{segment(job_id)}/cancel", JobResponse)

    @method
    def resume(self, job_id: str) -> Call[JobResponse]:
        """Resume a cancelled job."""
        return Call("POST", f"/jobs/{segment(job_id)}/resume", JobResponse)

    @method
    def retry(self, job_id: str) -> Call[JobResponse]:
        """Retry the dead items of a job."""
        return Call("POST", f"/jobs/{segment(job_id)}/retry", JobResponse)


def results_of(job_id: str, *, after: int, limit: int) -> Call[JobResults]:
    """GET /jobs/{id}/results."""
    query = query_of(after=after, limit=limit)
    return LinesCall("GET", f"/jobs/{segment(job_id)}/results", JobResults, query=query)
