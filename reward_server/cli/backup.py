"""`labs backup` and `labs restore`: everything a server keeps in one file, and back."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

from reward_server.cli.doctor import Data
from reward_server.errors import ConfigurationError
from reward_server.program import as_called
from reward_server.settings import load_settings
from scenarios.spelling import counted


def backup(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="File to write, for example labs.tar.gz.")],
    data: Data = None,
) -> None:
    """Back up the database, pepper, models and calibrations to one file. The server can keep running.

    The file contains the secret of the API keys and all conversations: keep it as safe as the server. Folders of
    training runs are not in it.
    """
    from reward_server.backup.run import back_up

    if archive.exists():
        raise ConfigurationError(f"{archive} exists: choose another file")
    done = asyncio.run(back_up(load_settings({"data": data}), archive))
    database = f"the {done.engine} database at revision {done.revision} (episodes, keys, jobs)"
    typer.echo(f"{archive}: {database}, the pepper and {_others(done.files)}; {done.size_bytes:,} bytes")
    if done.runs_left_out:
        folder = load_settings({"data": data}).runs
        typer.echo(
            f"Checkpoints and policies of {done.runs_left_out} training runs are not in it: copy {folder} yourself.",
            err=True,
        )


def restore(
    archive: Annotated[
        Path, typer.Argument(metavar="FILE", help="File written by the backup command.", dir_okay=False)
    ],
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing database.")] = False,
) -> None:
    """Restore the database, pepper, models and calibrations from a backup. Stop all servers first.

    The next start migrates an older backup to the current schema.
    """
    from reward_server.backup.run import restore as bring_back

    done = asyncio.run(bring_back(load_settings({"data": data}), archive, force=force))
    start = as_called("./labs serve") + ("" if data is None else f" --data {shlex.quote(str(data))}")
    database = f"the {done.engine} database as of {done.created_at}"
    typer.echo(f"Restored {database}, the pepper and {_others(done.files)}. Start it: {start}")


def _others(count: int) -> str:
    """The contents besides the database."""
    return f"{counted(count, 'other file')} (reward models, calibrations)"
