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
from reward_server.api.access import for_keys
from reward_server.api.answers import Events, answers, events
from reward_server.api.body import JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
from reward_server.api.event_stream import EventStream, ProgressSnapshot
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


@router.post("/training-runs", response_model=TrainingRunResponse, responses=answers(examples.TRAINING_RUN, 404))
async def start_training_run(
    request: Request,
    lab: Annotated[Lab, for_keys(*START)],
    wanted: Annotated[TrainingRunRequest, JsonBody(example=examples.TRAINING_RUN_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Start the learner with a configuration, which it checks first. A run waits until those before it have ended."""
    services = services_of(request)
    await services.storage.require_room(lab)
    return answer(request, await services.training_runs.start(lab, wanted, key))


class RunsQuery(PagedQuery):
    """Query of the list."""

    status: RunStatus | None = Field(default=None, description="Only runs with this status.")


@router.get("/training-runs", response_model=TrainingRunList, responses=answers(examples.TRAINING_RUNS, 400))
async def list_training_runs(
    request: Request, lab: Annotated[Lab, for_keys(*LOOK)], query: Annotated[RunsQuery, Query()]
) -> Body:
    """The lab's runs, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.TRAINING_RUN)
    rows = await services.training_runs.page(lab, query.limit + 1, pager.after(query.cursor), query.status)
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.training_run_id))
    return answer(request, {"data": [document(row) for row in shown], **following})


@router.get(
    "/training-runs/{training_run_id}",
    response_model=TrainingRunResponse,
    responses=answers(examples.TRAINING_RUN, 404),
)
async def read_training_run(request: Request, lab: Annotated[Lab, for_keys(*LOOK)], training_run_id: RunId) -> Body:
    """Return the state of a run."""
    return answer(request, await services_of(request).training_runs.get(lab, training_run_id))


@router.delete(
    "/training-runs/{training_run_id}",
    response_model=TrainingRunResponse,
    responses=answers(examples.TRAINING_RUN, 404, 409),
)
async def delete_training_run(request: Request, lab: Annotated[Lab, for_keys(*START)], training_run_id: RunId) -> Body:
    """Delete a run that has ended, with its metrics, its checkpoints and the policy."""
    return answer(request, await services_of(request).training_runs.delete(lab, training_run_id))


@router.post(
    "/training-runs/{training_run_id}/stop",
    response_model=TrainingRunResponse,
    responses=answers(examples.TRAINING_RUN, 404),
)
async def stop_training_run(request: Request, lab: Annotated[Lab, for_keys(*START)], training_run_id: RunId) -> Body:
    """Stop a run after the update it is at, with a checkpoint. One that has ended stays as it is."""
    return answer(request, await services_of(request).training_runs.stop(lab, training_run_id))


@router.post(
    "/training-runs/{training_run_id}/resume",
    response_model=TrainingRunResponse,
    responses=answers(examples.TRAINING_RUN, 404, 409),
)
async def resume_training_run(request: Request, lab: Annotated[Lab, for_keys(*START)], training_run_id: RunId) -> Body:
    """Continue a run that was stopped or that failed, from its newest checkpoint."""
    return answer(request, await services_of(request).training_runs.resume(lab, training_run_id))


class AfterQuery(QueryModel):
    """Query of what follows."""

    after: int = Field(default=-1, ge=-1, le=10**9, description="Start after the records of this step.")


class MetricsQuery(AfterQuery):
    """Query of metrics."""

    limit: int = Field(default=100, ge=1, le=1000, description="Records per page.")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")


@router.get(
    "/training-runs/{training_run_id}/metrics",
    response_model=TrainingMetrics,
    responses=answers(examples.TRAINING_METRICS, 400, 404),
)
async def read_training_metrics(
    request: Request,
    lab: Annotated[Lab, for_keys(*LOOK)],
    training_run_id: RunId,
    query: Annotated[MetricsQuery, Query()],
) -> Body:
    """Return the metrics of the learner so far, oldest first: a record for every update and every evaluation."""
    services = services_of(request)
    row = await services.training_runs.find(lab, training_run_id)
    pager = Pager(services.cursors, lab.lab_id, METRIC)
    end = pager.after(query.cursor)
    place = MetricPlace(query.after) if end is None else _place(row, end)
    found = await services.training_runs.metrics(lab, training_run_id, place, query.limit + 1)
    shown, following = pager.shown(found, query.limit, lambda each: _end(row, each))
    return answer(request, {"data": [each.record for each in shown], **following})


@router.get(
    "/training-runs/{training_run_id}/events",
    response_model=TrainingRunEvent,
    response_class=Events,
    responses=events(("progress", "finished"), 400, 404, model=TrainingRunEvent, example=examples.TRAINING_RUN_EVENT),
)
async def follow_training_run(
    request: Request,
    lab: Annotated[Lab, for_keys(*LOOK)],
    training_run_id: RunId,
    query: Annotated[AfterQuery, Query()],
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
