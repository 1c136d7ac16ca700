"""Jobs: a list, one with its live progress, its results as a table; submit from lines, cancel, resume, retry."""

from __future__ import annotations

from itertools import islice
from typing import Any

from fastapi import Response

from reward_server.api.body import read_json, validate
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.query import QueryModel
from reward_server.api.routes import jobs as api
from reward_server.console import queries, view
from reward_server.console.forms import Form
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.errors import FieldProblem, InvalidRequest, LabsError
from reward_server.ids import IdPrefix
from reward_server.preferences.agreement_tables import tables
from reward_server.store.job_records import OPEN
from reward_server.store.records import PageEnd
from trainer_client.wire import JobRequest

pages = Pages()
Json = dict[str, Any]
ROWS = 50
TYPES = ("evaluate", "compare", "rescore")
STEPS = {"cancel": api.cancel_job, "resume": api.resume_job, "retry": api.retry_job}


class ResultsPageQuery(QueryModel):
    """The start of the table of results."""

    after: int = -1


@pages.read("/jobs", like=api.list_jobs)
async def jobs(visit: Visit) -> Response:
    """The lab's jobs."""
    return await _jobs(visit, Form())


async def _jobs(visit: Visit, entered: Form, **refused: Any) -> Response:
    query = queries.read(visit, PagedQuery)
    pager = Pager(visit.services.cursors, visit.lab.lab_id, IdPrefix.JOB)
    rows = await visit.services.jobs.page(visit.lab, query.limit + 1, pager.after(query.cursor))
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.job_id))
    found = await visit.services.jobs.shown(visit.lab, shown)
    live = any(each["status"] in OPEN for each in found)
    template = "_jobs.html" if visit.is_partial else "jobs.html"
    shown_with = {"live": live, "more": following.get("next_cursor", ""), "types": TYPES, "entered": entered}
    return view.page(visit, template, jobs=found, **shown_with, **refused)


@pages.change("/jobs", like=api.submit_job)
async def submit(visit: Visit) -> Response:
    """Queue a job over lines that were pasted."""
    try:
        body = await visit.services.jobs.submit(visit.lab, _request(visit.form), None)
    except InvalidRequest as error:
        return await _jobs(visit, visit.form, **view.refusal(visit.request, error))
    return view.sent(visit.request, f"{ROOT}/jobs/{body['job_id']}")


@pages.read("/jobs/{job_id}", like=api.read_job)
async def job(visit: Visit, job_id: str) -> Response:
    """The page of a job; while it is open, a part of the page asks again."""
    body = await visit.services.jobs.get(visit.lab, job_id)
    if visit.is_partial:
        # The page asks until the job is over, and then needs what lies around this part, too: its results.
        is_open = body["status"] in OPEN
        return view.page(visit, "_job.html", job=body) if is_open else view.renewed()
    after = queries.read(visit, ResultsPageQuery).after
    results = [each async for each in _first(visit, job_id, after)]
    return view.page(
        visit,
        "job.html",
        job=body,
        results=results[:ROWS],
        after=results[ROWS - 1]["index"] if len(results) > ROWS else None,
        **await _figures(visit, job_id),
    )


for _step, _like in STEPS.items():

    async def _moved(visit: Visit, job_id: str, step: str = _step) -> Response:
        await getattr(visit.services.jobs, step)(visit.lab, job_id)
        return view.sent(visit.request, f"{ROOT}/jobs/{job_id}")

    pages.change(f"/jobs/{{job_id}}/{_step}", like=_like)(_moved)


async def _first(visit: Visit, job_id: str, after: int) -> Any:
    count = 0
    async for each in visit.services.jobs.results(visit.lab, job_id, after):
        yield each
        count += 1
        if count > ROWS:
            return


async def _figures(visit: Visit, job_id: str) -> Json:
    """What the report of the job has in single figures, and in tables."""
    try:
        report = await visit.services.jobs.report(visit.lab, job_id)
    except LabsError:
        report = {}
    measured = report.get("agreement", {})
    counts = {name: measured[name] for name in ("entries", "dialogues", "conversations") if name in measured}
    figures = {
        name: value
        for name, value in (report | counts).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {"report": dict(islice(figures.items(), 8)), "tables": tables(measured), "notes": measured.get("notes", [])}


def _request(form: Form) -> JobRequest:
    items = [_item(line, number) for number, line in enumerate(form.text("items").splitlines(), start=1) if line]
    given: Json = {"type": form.line("type")}
    return validate(JobRequest, given | ({"items": items} if items else {}))


def _item(line: str, number: int) -> Json:
    try:
        item = read_json(line.encode())
    except InvalidRequest as error:
        raise InvalidRequest(errors=[FieldProblem((f"line {number}",), error.errors[0].msg)]) from None
    if not isinstance(item, dict):
        raise InvalidRequest(errors=[FieldProblem((f"line {number}",), "Must be a JSON object.")])
    return item
