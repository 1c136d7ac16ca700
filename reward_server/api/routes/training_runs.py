"""Training runs: start, list, look, follow, stop, resume, delete.

Whoever starts one starts a process on the server, so that takes an operator's key. Its lab's keys for training may look
on.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field
from pydantic_core import to_json

from reward_server.api import examples
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of
from reward_server.api.event_stream import MEDIA, EventStream, ProgressSnapshot
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import InvalidCursor
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from reward_server.store.training_records import MetricPlace, MetricRow, RunStatus, TrainingRunRow
from reward_server.training.service import document
from trainer_client.wire import (
    TrainingMetrics,
    TrainingRunEvent,
    TrainingRunList,
    TrainingRunRequest,
    TrainingRunResponse,
)

router = Router(prefix=API_PREFIX, tags=["training runs"])
RunId = Annotated[str, Path(description="`run_…`")]
START = (Scope.OPERATE,)
LOOK = (Scope.TRAIN, Scope.OPERATE)
METRIC = "metric"
"""What ids in cursors of metrics begin with."""
EVENT_RECORDS = 200
_ONE = Operation(TrainingRunResponse, scopes=LOOK, errors=(404,), response_example=examples.TRAINING_RUN)
_STOPPED = Operation(TrainingRunResponse, scopes=START, errors=(404,), response_example=examples.TRAINING_RUN)
_MOVED = Operation(TrainingRunResponse, scopes=START, errors=(404, 409), response_example=examples.TRAINING_RUN)


@router.post("/training-runs")
@operation(
    Operation(
        TrainingRunResponse,
        TrainingRunRequest,
        scopes=START,
        errors=(404,),
        request_example=examples.TRAINING_RUN_REQUEST,
        response_example=examples.TRAINING_RUN,
        retryable=True,
    )
)
async def start_training_run(request: Request, lab: Caller) -> Response:
    """Start the learner with a configuration, which it checks first. A run waits until those before it have ended."""
    wanted = await body_as(TrainingRunRequest, request)
    services = services_of(request)
    await services.storage.require_room(lab)
    return answer(request, await services.training_runs.start(lab, wanted, idempotency_key(request)))


class RunsQuery(PagedQuery):
    """Query of the list."""

    status: RunStatus | None = Field(default=None, description="Only runs with this status.")


@router.get("/training-runs")
@operation(Operation(TrainingRunList, scopes=LOOK, errors=(400,), response_example=examples.TRAINING_RUNS))
async def list_training_runs(request: Request, lab: Caller, query: Annotated[RunsQuery, Query()]) -> Response:
    """The lab's runs, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.TRAINING_RUN)
    rows = await services.training_runs.page(lab, query.limit + 1, pager.after(query.cursor), query.status)
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.training_run_id))
    return answer(request, {"data": [document(row) for row in shown], **following})


@router.get("/training-runs/{training_run_id}")
@operation(_ONE)
async def read_training_run(request: Request, lab: Caller, training_run_id: RunId) -> Response:
    """Return the state of a run."""
    return answer(request, await services_of(request).training_runs.get(lab, training_run_id))


@router.delete("/training-runs/{training_run_id}")
@operation(_MOVED)
async def delete_training_run(request: Request, lab: Caller, training_run_id: RunId) -> Response:
    """Delete a run that has ended, with its metrics, its checkpoints and the policy."""
    return answer(request, await services_of(request).training_runs.delete(lab, training_run_id))


@router.post("/training-runs/{training_run_id}/stop")
@operation(_STOPPED)
async def stop_training_run(request: Request, lab: Caller, training_run_id: RunId) -> Response:
    """Stop a run after the update it is at, with a checkpoint. One that has ended stays as it is."""
    return answer(request, await services_of(request).training_runs.stop(lab, training_run_id))


@router.post("/training-runs/{training_run_id}/resume")
@operation(_MOVED)
async def resume_training_run(request: Request, lab: Caller, training_run_id: RunId) -> Response:
    """Continue a run that was stopped or that failed, from its newest checkpoint."""
    return answer(request, await services_of(request).training_runs.resume(lab, training_run_id))


class AfterQuery(QueryModel):
    """Query of what follows."""

    after: int = Field(default=-1, ge=-1, le=10**9, description="Start after the records of this step.")


class MetricsQuery(AfterQuery):
    """Query of metrics."""

    limit: int = Field(default=100, ge=1, le=1000, description="Records per page.")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")


@router.get("/training-runs/{training_run_id}/metrics")
@operation(Operation(TrainingMetrics, scopes=LOOK, errors=(400, 404), response_example=examples.TRAINING_METRICS))
async def read_training_metrics(
    request: Request, lab: Caller, training_run_id: RunId, query: Annotated[MetricsQuery, Query()]
) -> Response:
    """Return the metrics of the learner so far, oldest first: a record for every update and every evaluation."""
    services = services_of(request)
    row = await services.training_runs.find(lab, training_run_id)
    pager = Pager(services.cursors, lab.lab_id, METRIC)
    end = pager.after(query.cursor)
    place = MetricPlace(query.after) if end is None else _place(row, end)
    found = await services.training_runs.metrics(lab, training_run_id, place, query.limit + 1)
    shown, following = pager.shown(found, query.limit, lambda each: _end(row, each))
    return answer(request, {"data": [each.record for each in shown], **following})


@router.get("/training-runs/{training_run_id}/events")
@operation(
    Operation(
        TrainingRunEvent,
        scopes=LOOK,
        errors=(400, 404),
        response_media=MEDIA,
        events=("progress", "finished"),
        response_example=examples.TRAINING_RUN_EVENT,
    )
)
async def follow_training_run(
    request: Request, lab: Caller, training_run_id: RunId, query: Annotated[AfterQuery, Query()]
) -> Response:
    """Server-sent events: `progress` whenever the run moved, with its new records, and `finished` when it is over."""
    runs, place = services_of(request).training_runs, MetricPlace(query.after)
    await runs.find(lab, training_run_id)

    async def look(lab: Lab) -> ProgressSnapshot:
        nonlocal place
        row = await runs.find(lab, training_run_id)
        found = await runs.metrics(lab, training_run_id, place, EVENT_RECORDS)
        if found:
            place = MetricPlace(found[-1].step, found[-1].kind)
        has_more = len(found) == EVENT_RECORDS
        body = document(row)
        data = to_json(body | {"metrics": [each.record for each in found]})
        state = to_json(body | {"place": [place.step, place.kind]})
        return ProgressSnapshot(data, state, is_over=not row.is_open and not has_more, has_more=has_more)

    return EventStream(request, lab, look)


def _end(row: TrainingRunRow, last: MetricRow) -> PageEnd:
    """A record of a run as the end of a page."""
    return PageEnd(row.created_at, f"{METRIC}_{row.training_run_id}.{last.step}.{last.kind}")


def _place(row: TrainingRunRow, end: PageEnd) -> MetricPlace:
    """The place of such an end; `InvalidCursor` for one of another run."""
    run_id, step, kind = end.id.removeprefix(f"{METRIC}_").split(".", 2)
    if run_id != row.training_run_id:
        raise InvalidCursor
    return MetricPlace(int(step), kind)
