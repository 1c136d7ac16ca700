"""`labs runs`: runs of the learner on a server. Talks to the server over HTTP, as any client does."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from reward_server.cli.jobs import Url, connected
from reward_server.cli.progress import shown
from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from trainer_client.client import LabsClient
    from trainer_client.wire import TrainingRunSummary

app = typer.Typer(help="Train policies on a server with the bundled learner.", no_args_is_help=True)

RunArgument = Annotated[str, typer.Argument(help="The run's id.")]


@app.command()
def start(
    file: Annotated[
        Path | None,
        typer.Argument(help="The learner's TOML file; default: a tiny model.", exists=True, dir_okay=False),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    url: Url = None,
) -> None:
    """Start a run; prints its id. Needs an operator's key."""
    config = {} if file is None else _read(file)
    with connected(url) as client:
        run = client.training_runs.start(config, name=name)
        typer.echo(run.training_run_id)
        if wait:
            _follow(client, run.training_run_id)


@app.command("list")
def list_runs(url: Url = None) -> None:
    """List the runs, one per line, newest first."""
    with connected(url) as client:
        for run in client.training_runs.list(limit=100):
            typer.echo(_line(run))


@app.command()
def show(
    run_id: RunArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    url: Url = None,
) -> None:
    """Show how far a run is, and its rewards."""
    with connected(url) as client:
        if wait:
            _follow(client, run_id)
        else:
            _tell(client.training_runs.get(run_id))


@app.command()
def metrics(
    run_id: RunArgument,
    after: Annotated[int, typer.Option(help="Start after this update.")] = -1,
    url: Url = None,
) -> None:
    """Write one line of JSON for every update and every evaluation."""
    with connected(url) as client:
        for record in client.training_runs.metrics(run_id, after=after, limit=1000):
            typer.echo(json.dumps(record.model_dump()))


@app.command()
def stop(run_id: RunArgument, url: Url = None) -> None:
    """Stop a run after the update it is at, with a checkpoint."""
    with connected(url) as client:
        _tell(client.training_runs.stop(run_id))


@app.command()
def resume(run_id: RunArgument, url: Url = None) -> None:
    """Continue a run that was stopped or that failed."""
    with connected(url) as client:
        _tell(client.training_runs.resume(run_id))


@app.command()
def delete(run_id: RunArgument, url: Url = None) -> None:
    """Delete a run that has ended, with its checkpoints."""
    with connected(url) as client:
        client.training_runs.delete(run_id)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: {error}") from None


def _follow(client: LabsClient, run_id: str) -> None:
    """Show how far a run is until it is over; exit code 1 where it failed."""
    with shown(Console(stderr=True)) as report:
        run = client.training_runs.wait(run_id, on_progress=lambda run: report(run.status, run.step, run.steps))
    _tell(run)
    if run.status == "failed":
        raise typer.Exit(1)


def _tell(run: TrainingRunSummary) -> None:
    typer.echo(_line(run))
    if run.error is not None:
        typer.echo(f"error: {run.error}", err=True)


def _line(run: TrainingRunSummary) -> str:
    told = f"{run.training_run_id}  {run.status}  {run.step} of {run.steps} updates"
    rewards = (("reward", run.reward), ("held-out reward", run.held_out_reward))
    known = [f"{name} {value:.3f}" for name, value in rewards if value is not None]
    return ", ".join([told, *known]) + (f"  ({run.name})" if run.name else "")
