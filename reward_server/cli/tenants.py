"""`labs tenants`: the labs of this server, what each may use, and the end of what it stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_server.cli.keys import with_store
from reward_server.store.records import LabLimitsRow

if TYPE_CHECKING:
    from reward_server.auth.tenants import Tenants
    from reward_server.store.records import LabRow
    from reward_server.store.store import Store

app = typer.Typer(help="List labs, set their limits, delete their data.", no_args_is_help=True)

NANO = 1_000_000_000
MEGA = 1_000_000
NONE = 0
"""What takes a limit away."""

LabArgument = Annotated[str, typer.Argument(help="The lab's id.")]
Data = Annotated[Path | None, typer.Option(help="The server's data folder; LABS_DATA.", file_okay=False)]


@app.command("list")
def list_tenants(data: Data = None) -> None:
    """List the labs, one per line, with their limits."""
    rows = with_store(data, lambda store: _tenants(store).list())
    for row in rows:
        typer.echo(_line(row))
    if not rows:
        typer.echo("There are no labs; creating a key creates its lab.", err=True)


@app.command()
def limit(
    lab: LabArgument,
    characters_per_day: Annotated[int | None, typer.Option(min=0, help="Characters of text read per day.")] = None,
    tokens_per_day: Annotated[int | None, typer.Option(min=0, help="Language model tokens per day.")] = None,
    usd_per_day: Annotated[float | None, typer.Option(min=0, help="USD for language models per day.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=0, help="Requests in progress at once.")] = None,
    storage_mb: Annotated[
        float | None,
        typer.Option(min=0, help="Megabytes stored: conversations, files, results of jobs, models, calibrations."),
    ] = None,
    retention_days: Annotated[
        int | None,
        typer.Option(
            min=0, help="Days until conversations, files, ended jobs and rows of interrupted trainings are deleted."
        ),
    ] = None,
    data: Data = None,
) -> None:
    """Set limits of a lab. Limits that you leave out stay; 0 removes a limit."""
    given = {
        "characters_per_day": characters_per_day,
        "tokens_per_day": tokens_per_day,
        "nano_usd_per_day": None if usd_per_day is None else round(usd_per_day * NANO),
        "concurrency": concurrency,
        "storage_bytes": None if storage_mb is None else round(storage_mb * MEGA),
        "retention_days": retention_days,
    }
    changed = {name: None if value == NONE else value for name, value in given.items() if value is not None}

    async def work(store: Store) -> LabRow:
        tenants = _tenants(store)
        return await tenants.change(lab, limits=replace((await tenants.get(lab)).limits, **changed))

    typer.echo(_line(with_store(data, work)))


@app.command("delete-data")
def delete_data(
    lab: LabArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data: Data = None,
) -> None:
    """Permanently delete a lab's conversations, reward models and calibrations.

    Its keys, its usage and the audit log stay.
    """
    with_store(data, lambda store: _tenants(store).get(lab))  # before the question: a misspelt lab is none
    if not yes:
        typer.confirm(f"Permanently delete all conversations, reward models and calibrations of {lab}?", abort=True)
    from reward_server.settings import load_settings

    folders = load_settings({"data": data}).folders_of
    deleted = with_store(data, lambda store: _tenants(store, folders).delete_data(lab))
    told = ", ".join(f"{count} {name}" for name, count in deleted.items())
    typer.echo(f"Deleted: {told}." if told else "There was nothing to delete.", err=True)


def _tenants(store: Store, folders: Callable[[str], Sequence[Path]] = lambda _lab_id: ()) -> Tenants:
    from reward_server.auth.tenants import Tenants
    from reward_server.clock import SystemClock

    return Tenants(store, SystemClock(), folders=folders)


def _line(row: LabRow) -> str:
    """One lab on one line, so that it can be searched and cut."""
    parts = [f"id={row.lab_id}", *([f"name={row.name}"] if row.name else [])]
    for field in fields(LabLimitsRow):
        value = getattr(row.limits, field.name)
        if value is not None:
            parts.append(_shown(field.name, value))
    parts.append(f"created={row.created_at:%Y-%m-%dT%H:%MZ}")
    return "  ".join(parts)


def _shown(name: str, value: int) -> str:
    if name == "nano_usd_per_day":
        return f"usd-per-day={value / NANO:g}"
    if name == "storage_bytes":
        return f"storage-mb={value / MEGA:g}"
    return f"{name.replace('_', '-')}={value}"
