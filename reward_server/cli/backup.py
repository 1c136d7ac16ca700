"""`labs backup` and `labs restore`: everything a server keeps in one file, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from reward_server.cli.doctor import Data
from reward_server.errors import ConfigurationError
from reward_server.program import as_called
from reward_server.settings import load_settings


def backup(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it, such as labs.tar.gz.")],
    data: Data = None,
) -> None:
    """Write database, pepper, models and calibrations into one file. The server may run meanwhile.

    Whoever has the file has the secret of the API keys and all conversations: keep it as safe as the server.
    """
    from reward_server.jobs.backup.run import back_up

    if archive.exists():
        raise ConfigurationError(f"{archive} exists: name another file")
    done = asyncio.run(back_up(load_settings({"data": data}), archive))
    typer.echo(f"{archive}: {done.engine} at revision {done.revision}, {done.files} files, {done.size_bytes:,} bytes")


def restore(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="What backup wrote.", dir_okay=False)],
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a database that is there.")] = False,
) -> None:
    """Make database, pepper, models and calibrations what a backup says. Servers have to be stopped.

    The next start brings an older backup to the present schema.
    """
    from reward_server.jobs.backup.run import restore as bring_back

    done = asyncio.run(bring_back(load_settings({"data": data}), archive, force=force))
    typer.echo(f"{done.engine} as of {done.created_at}, {done.files} files. Start it: {as_called('./labs serve')}")
