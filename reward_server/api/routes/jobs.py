"""Jobs: submit, look, follow, cancel, resume, retry, read results."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field
from pydantic_core import to_json

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import Events, JsonLines, answers, events, lines
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
from reward_server.api.event_stream import EventStream, ProgressSnapshot
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from trainer_client.wire import JobList, JobReport, JobRequest, JobResponse, JobResult

router = Router(prefix=API_PREFIX, tags=["jobs"])
JobId = Annotated[str, Path(description="`job_…`")]


@router.post("/jobs", response_model=JobResponse, responses=answers(examples.JOB, 403, 404))
async def submit_job(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[JobRequest, JsonBody(CONVERSATIONS, example=examples.JOB_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Queue a job over a file or over items that come with it."""
    return answer(request, await services_of(request).jobs.submit(lab, wanted, key))


@router.get("/jobs", response_model=JobList, responses=answers(examples.JOB_LIST, 400))
async def list_jobs(
    request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], query: Annotated[PagedQuery, Query()]
) -> Body:
    """The lab's jobs, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.JOB)
    rows = await services.jobs.page(lab, query.limit + 1, pager.after(query.cursor))
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.job_id))
    return answer(request, {"data": await services.jobs.shown(lab, shown), **following})


@router.get("/jobs/{job_id}", response_model=JobResponse, responses=answers(examples.JOB, 404))
async def read_job(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], job_id: JobId) -> Body:
    """Return the state of a job."""
    return answer(request, await services_of(request).jobs.get(lab, job_id))


@router.post("/jobs/{job_id}/cancel", response_model=JobResponse, responses=answers(examples.JOB, 404))
async def cancel_job(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], job_id: JobId) -> Body:
    """Cancel a job; finished items stay. One that is over stays as it is."""
    return answer(request, await services_of(request).jobs.cancel(lab, job_id))


@router.post("/jobs/{job_id}/resume", response_model=JobResponse, responses=answers(examples.JOB, 404, 409))
async def resume_job(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], job_id: JobId) -> Body:
    """Go on with a cancelled job where it stopped."""
    return answer(request, await services_of(request).jobs.resume(lab, job_id))


@router.post("/jobs/{job_id}/retry", response_model=JobResponse, responses=answers(examples.JOB, 404, 409))
async def retry_job(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], job_id: JobId) -> Body:
    """Retry the dead items of a job."""
    return answer(request, await services_of(request).jobs.retry(lab, job_id))


@router.get("/jobs/{job_id}/report", response_model=JobReport, responses=answers(examples.JOB_REPORT, 404))
async def read_report(
    request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE, Scope.EXPORT)], job_id: JobId
) -> Body:
    """Sum up the finished items: means, winners, or what changed under the present scoring version."""
    return answer(request, await services_of(request).jobs.report(lab, job_id))


class ResultsQuery(QueryModel):
    """Query of results."""

    after: int = Field(default=-1, ge=-1, le=10**9, description="Start after the item with this index.")
    limit: int | None = Field(
        default=None, ge=1, le=10_000, description="Maximum number of lines; without it, all that follow."
    )


@router.get(
    "/jobs/{job_id}/results",
    response_model=JobResult,
    response_class=JsonLines,
    responses=lines(JobResult, examples.JOB_RESULT, 400, 404),
)
async def read_results(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE, Scope.EXPORT)],
    job_id: JobId,
    query: Annotated[ResultsQuery, Query()],
) -> Response:
    """A line for every item that is finished so far, in the order of the input."""
    jobs = services_of(request).jobs
    await jobs.find(lab, job_id)

    async def rows() -> AsyncIterator[bytes]:
        left = query.limit
        async for result in jobs.results(lab, job_id, query.after):
            yield to_json(result) + b"\n"
            if left is not None and (left := left - 1) == 0:
                return

    return JsonLines(rows())


@router.get(
    "/jobs/{job_id}/events",
    response_model=JobResponse,
    response_class=Events,
    responses=events(("progress", "finished"), 404, model=JobResponse, example=examples.JOB),
)
async def follow_job(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], job_id: JobId) -> Response:
    """Server-sent events: `progress` whenever the job moved, and `finished` when it is over."""
    jobs = services_of(request).jobs
    await jobs.find(lab, job_id)

    async def look(lab: Lab) -> ProgressSnapshot:
        row = await jobs.find(lab, job_id)
        [body] = await jobs.shown(lab, [row])
        state = to_json({name: value for name, value in body.items() if name != "eta_s"})
        return ProgressSnapshot(to_json(body), state, is_over=not row.is_open)

    return EventStream(request, lab, look)
