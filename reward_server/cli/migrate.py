"""`labs migrate`: bring the database to the schema of this version before servers start, as the job of a roll-out.

With `--to`, back to the schema of an older version, before that is installed again.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from reward_server.cli.doctor import Data
from reward_server.errors import InvalidRequest
from reward_server.settings import load_settings


def migrate(
    folder: Data = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="Go back to this older revision; says first what that deletes."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Create the database, or bring it to the schema of this version. Servers do it at their start, too."""
    from reward_server.store.migrate import current
    from reward_server.store.migrate import migrate as bring

    database = load_settings({"data": folder}).database
    if to is not None:
        _go_back(database, to, yes=yes)
    else:
        asyncio.run(bring(database))
    typer.echo(f"The database is at revision {asyncio.run(current(database))}.")


def _go_back(database: str, to: str, *, yes: bool) -> None:
    from reward_server.store.backup import alone
    from reward_server.store.migrate import downgrade, drops

    async def run() -> None:
        async with alone(database):
            await downgrade(database, to)

    lost = drops(to, since=_newer(database, to))
    typer.echo("\n  ".join(["Going back deletes, for good:", *lost]), err=True)
    if not yes:
        typer.confirm("Go back?", abort=True, err=True)
    asyncio.run(run())


def _newer(database: str, to: str) -> str:
    """The revision that the database has, if it is a newer one than `to`."""
    from reward_server.store.migrate import current, require_known, revisions

    asyncio.run(require_known(database))
    now, known = asyncio.run(current(database)), revisions()
    older = known[: known.index(now)] if now in known else []
    if now is None or not older:
        raise InvalidRequest("There is no older revision: the database is empty or at the first.")
    if to not in older:
        raise InvalidRequest(f"--to takes an older revision than that of the database, {now}: {', '.join(older)}")
    return now
