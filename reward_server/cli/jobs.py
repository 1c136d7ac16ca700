"""`labs jobs`: submit a file to a server and follow it. Talks to the server over HTTP, as any client does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from reward_server.cli.progress import Report, shown
from reward_server.errors import InvalidRequest, LabsError
from reward_server.program import as_called

if TYPE_CHECKING:
    from trainer_client.client import LabsClient
    from trainer_client.wire import JobResponse

app = typer.Typer(help="Run jobs on a server, such as scoring files, and follow them.", no_args_is_help=True)

Url = Annotated[str | None, typer.Option(help="URL of the server; LABS_URL. \\[default: http://127.0.0.1:8321]")]
JobArgument = Annotated[str, typer.Argument(help="The job's id.")]

SET_A_KEY = "set LABS_API_KEY to one that it has (`./labs keys create` makes one)"

TRAINING, CALIBRATION, AGREEMENT = "train_reward_model", "calibrate", "measure_agreement"
OPTIONS = {TRAINING: "training", CALIBRATION: "calibration", AGREEMENT: "agreement"}
"""The field of a request that has the options of a type."""
MADE = {TRAINING: "reward_model_id", CALIBRATION: "calibration_id"}
"""What the result of a job names the thing that it made."""


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(help="JSONL file with one item per line.", exists=True, dir_okay=False)],
    job_type: Annotated[
        str,
        typer.Option("--type", help="evaluate, compare, rescore, train_reward_model, calibrate or measure_agreement."),
    ] = "evaluate",
    collection: Annotated[str | None, typer.Option(help="Collection of items that name none.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario of items that name none.")] = None,
    options: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Options of the last three types as JSON; see docs/jobs.md."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    url: Url = None,
) -> None:
    """Upload a file and submit a job for it; prints the job's id."""
    given = _given(job_type, options)
    fields: dict[str, Any] = {} if given is None else {OPTIONS[job_type]: given}
    with connected(url) as client:
        uploaded = client.jobs.upload(file)
        job = client.jobs.submit(
            job_type,
            file_id=uploaded.file_id,
            collection_slug=collection,
            scenario_slug=scenario,
            **fields,
        )
        typer.echo(job.job_id)
        if wait:
            _tell_made(client, follow(client, job.job_id))


@app.command("list")
def list_jobs(url: Url = None) -> None:
    """List the jobs, one per line, newest first."""
    with connected(url) as client:
        for job in client.jobs.list(limit=100):
            typer.echo(_line(job))


@app.command()
def show(
    job_id: JobArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    url: Url = None,
) -> None:
    """Show the progress of a job, or its summary once it has ended."""
    with connected(url) as client:
        job = follow(client, job_id) if wait else client.jobs.get(job_id)
        if not wait:
            typer.echo(_line(job))
            _explain(job)
        if job.counts.done:
            report = client.jobs.report(job_id).model_dump(exclude_none=True, exclude={"job_id", "request_id"})
            typer.echo(json.dumps(report, indent=2))


@app.command()
def results(
    job_id: JobArgument,
    out: Annotated[Path | None, typer.Option(help="File to write. \\[default: standard output]")] = None,
    url: Url = None,
) -> None:
    """Write one line of JSON for every finished item."""
    with connected(url) as client:
        lines = (line.model_dump_json(exclude_none=True) + "\n" for line in client.jobs.results(job_id))
        if out is None:
            for line in lines:
                typer.echo(line, nl=False)
        else:
            with out.open("w") as file:
                file.writelines(lines)


@app.command()
def cancel(job_id: JobArgument, url: Url = None) -> None:
    """Cancel a job; finished items stay."""
    with connected(url) as client:
        typer.echo(_line(client.jobs.cancel(job_id)))


@app.command()
def resume(job_id: JobArgument, url: Url = None) -> None:
    """Resume a cancelled job."""
    with connected(url) as client:
        typer.echo(_line(client.jobs.resume(job_id)))


@app.command()
def retry(job_id: JobArgument, url: Url = None) -> None:
    """Retry the dead items of a job."""
    with connected(url) as client:
        typer.echo(_line(client.jobs.retry(job_id)))


def _given(job_type: str, options: str | None) -> dict[str, Any] | None:
    """The options of a training, a calibration or a measurement."""
    if options is None:
        return None
    if job_type not in OPTIONS:
        raise InvalidRequest(f"--options goes with --type {TRAINING}, {CALIBRATION} and {AGREEMENT}")
    try:
        given = json.loads(options)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidRequest("--options takes a JSON object")
    return given


@contextmanager
def connected(url: str | None) -> Iterator[LabsClient]:
    """A client with the address and key of the environment; its errors are told in a line."""
    from trainer_client import errors
    from trainer_client.client import LabsClient

    try:
        with LabsClient(url) as client:
            yield client
    except errors.Unauthenticated as error:
        what = "does not accept this API key" if client.connection.api_key else "needs an API key"
        raise LabsError(f"the server at {error.host} {what}; {as_called(SET_A_KEY)}") from None
    except errors.LabsError as error:
        raise LabsError(str(error)) from None


def follow(client: LabsClient, job_id: str) -> JobResponse:
    """Show how far a job is until it is over; exit code 1 where it failed."""
    with shown(Console(stderr=True)) as report:
        job = client.jobs.wait(job_id, on_progress=lambda job: _report(report, job))
    typer.echo(_line(job))
    _explain(job)
    if job.status == "failed":
        raise typer.Exit(1)
    return job


def _explain(job: JobResponse) -> None:
    """Say why a job failed; one in which some items did has their reasons in the results."""
    if job.error is not None:
        typer.echo(f"error: {job.error}", err=True)


def _tell_made(client: LabsClient, job: JobResponse) -> None:
    """The id of what a training or a calibration made: it is what comes next. Of a measurement, its report."""
    if job.type == AGREEMENT and job.counts.done:
        for result in client.jobs.results(job.job_id):
            typer.echo((result.model_extra or {}).get("report"))
    if job.type in MADE and job.counts.done:
        for result in client.jobs.results(job.job_id):
            made = (result.model_extra or {}).get(MADE[job.type])
            typer.echo(f"{MADE[job.type]}: {made}")


def _report(report: Report, job: JobResponse) -> None:
    if job.stage is None:
        report("items", _finished(job), job.counts.total)
    else:
        report(job.stage, round(job.progress * 100), 100)


def _finished(job: JobResponse) -> int:
    return job.counts.total - job.counts.remaining


def _line(job: JobResponse) -> str:
    counts = job.counts
    told = f"{job.job_id}  {job.type}  {job.status}  {_finished(job)} of {counts.total} items"
    wrong = [f"{count} {name}" for name, count in (("failed", counts.failed), ("dead", counts.dead)) if count]
    if job.waits_for is not None:
        wrong.append(f"waits for the next day ({job.waits_for}, {job.waits_until})")
    return ", ".join([told, *wrong])
