"""`labs migrate`: bring the database to the schema of this version before servers start, as the job of a roll-out."""

from __future__ import annotations

import asyncio

import typer

from reward_server.cli.doctor import Data
from reward_server.settings import load_settings


def migrate(folder: Data = None) -> None:
    """Create the database, or bring it to the schema of this version. Servers do it at their start, too."""
    from reward_server.store.migrate import current
    from reward_server.store.migrate import migrate as bring

    database = load_settings({"data": folder}).database

    async def run() -> str | None:
        await bring(database)
        return await current(database)

    typer.echo(f"The database is at revision {asyncio.run(run())}.")
