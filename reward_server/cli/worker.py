"""`labs worker`: do jobs in a process of its own, beside a server or several, on the same database.

It has the judges, scenarios and reward models of a server with the same settings, and listens to nobody. On SIGTERM or
Ctrl-C it gives back what it has in hand and ends; a worker that is killed loses it when its lease runs out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from reward_server.removed_settings import gone
from reward_server.settings import Settings, load_settings


def worker(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Slices of items processed at the same time; LABS_JOB_WORKERS. \\[default: 1]"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder for the database and the key pepper; LABS_DATA.", file_okay=False)
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error; LABS_LOG_LEVEL.")] = None,
) -> None:
    """Run jobs that were submitted to a server on the same database."""
    settings = load_settings({"job_workers": workers, "data": data, "log_level": log_level})
    for line in gone(os.environ):
        typer.echo(f"labs: {line}", err=True)
    if settings.job_workers == 0:
        settings = settings.model_copy(update={"job_workers": 1})
    if asyncio.run(_run(settings)) == signal.SIGINT:
        raise KeyboardInterrupt


async def _run(settings: Settings) -> int | None:
    """Work until a signal; which one it was."""
    from reward_server.server.app import Ports, create_app
    from reward_server.server.signals import Signals

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    app = create_app(settings, ports=Ports(serves=False))
    with Signals() as signals:
        async with app.router.lifespan_context(app):

            def end(_number: int, _frame: FrameType | None) -> None:
                loop.call_soon_threadsafe(ended.set)

            signals.hear(end)
            typer.echo(f"Labs works on jobs, {settings.job_workers} at a time (data {settings.data})")
            await ended.wait()
    return signals.first
