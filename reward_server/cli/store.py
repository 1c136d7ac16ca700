"""`labs store`: the database of an installation, moved from SQLite to PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from reward_server.cli.doctor import Data
from reward_server.cli.progress import shown
from reward_server.settings import load_settings

app = typer.Typer(help="Move the database from SQLite to PostgreSQL.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def copy(
    to: Annotated[
        str, typer.Option("--to", metavar="URL", help="An empty PostgreSQL database: postgresql://labs@127.0.0.1/labs.")
    ],
    data: Data = None,
) -> None:
    """Copy the SQLite database of the data folder into an empty PostgreSQL database. Stop the server first.

    All rows are copied, or none; they are read back and compared. The SQLite database stays.
    """
    from reward_server.store.transfer import transfer

    with shown(Console(stderr=True)) as report:
        rows = asyncio.run(transfer(load_settings({"data": data}).database, to, report))
    filled = {name: count for name, count in rows.items() if count}
    typer.echo(f"Copied and compared {sum(filled.values()):,} rows of {len(filled)} tables.")
    for name, count in filled.items():
        typer.echo(f"  {count:,} {name}")
    typer.echo("Now set LABS_DATABASE_URL to this database and start the server with the same data folder.")
