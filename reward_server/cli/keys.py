"""`labs keys`: make, list and revoke the API keys that labs use.

A key is shown once, on standard output alone, so that it can be piped; everything said about it goes to
standard error.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reward_server.auth.lab import PLAN_RATES, Plan
from reward_server.auth.scopes import USUAL, Scope
from reward_server.errors import InvalidRequest
from reward_server.program import as_called
from reward_server.settings import load_settings
from scenarios.spelling import meant

if TYPE_CHECKING:
    from reward_server.auth.key_ring import KeyRing, NewKey
    from reward_server.store.records import KeyRow
    from reward_server.store.store import Store

app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)

ARGUMENTS = {"lab_id": "--lab", "name": "NAME", "rate_per_minute": "--rate"}
"""What the caller wrote, by what it is called further in."""

FIRST = (
    "This is the first key: from now on calls without a key are refused, also by a server that is running."
    " What was made without a key belongs to lab 'development'; a key of that lab (--lab development) reads it."
)
"""Development mode ends with it."""

Result = TypeVar("Result")
Data = Annotated[Path | None, typer.Option(help="The server's data folder; LABS_DATA.", file_okay=False)]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for, for example ci or production.")],
    lab: Annotated[str, typer.Option(help="Lab that owns the key; labs do not see each other's episodes.")],
    plan: Annotated[
        Plan | None, typer.Option(help="standard (60 requests per minute), premium (300) or custom (--rate).")
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Requests per minute; makes the plan custom.")] = None,
    collection: Annotated[
        list[str] | None, typer.Option(help="A collection the key may use; may be repeated. \\[default: all]")
    ] = None,
    full_scores: Annotated[bool, typer.Option(help="Add score_breakdown to this key's responses.")] = False,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="A scope of the key; may be repeated. \\[default: all but author and operate]"),
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="Add the scope operate: reward models, labs and keys, metrics.")
    ] = False,
    expires_days: Annotated[int | None, typer.Option(min=1, max=3650, help="Days until the key stops working.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Limit of requests in progress of this key.")] = None,
    data: Data = None,
) -> None:
    """Create a key and print it. It is shown only once."""
    if rate is not None and plan not in (None, Plan.CUSTOM):
        raise typer.BadParameter("--rate needs --plan custom")
    chosen = Plan.CUSTOM if rate is not None else plan or Plan.STANDARD
    _refuse_unknown(collection or [])

    async def work(ring: KeyRing) -> tuple[NewKey, bool]:
        is_first = await ring.is_empty()
        try:
            new = await ring.create(
                lab,
                name=name,
                plan=chosen,
                rate_per_minute=rate,
                collections=collection or None,
                full_scores=full_scores,
                scopes=frozenset(scope or USUAL) | ({Scope.OPERATE} if operator else set()),
                expires_in=None if expires_days is None else timedelta(days=expires_days),
                concurrency=concurrency,
            )
        except InvalidRequest as error:
            found = [f"{ARGUMENTS.get(str(each.loc[0]), each.loc[0])} {each.msg}" for each in error.errors]
            raise typer.BadParameter("; ".join(found) or error.message) from None
        return new, is_first

    made, is_first = _with_ring(data, work)
    limit = rate or PLAN_RATES[chosen]
    typer.echo(f"Key {made.row.key_id} for lab {lab!r}, {limit} requests a minute. It is not shown again:", err=True)
    typer.echo(made.text)
    if is_first:
        typer.echo(FIRST, err=True)


@app.command("list")
def list_keys(data: Data = None) -> None:
    """List the keys, one per line, without their secrets."""

    async def work(ring: KeyRing) -> list[KeyRow]:
        return await ring.list()

    rows = _with_ring(data, work)
    for row in rows:
        typer.echo(_line(row))
    if not rows:
        where = f" --data {shlex.quote(str(data))}" if data else ""
        typer.echo(as_called(f"There are no keys; create one: ./labs keys create NAME --lab LAB{where}"), err=True)


def _line(row: KeyRow) -> str:
    """One key on one line, so that it can be searched and cut."""
    parts = [f"id={row.key_id}", f"lab={row.lab_id}", f"name={row.name}", f"plan={row.plan}"]
    if row.rate_per_minute is not None:
        parts.append(f"rate={row.rate_per_minute}")
    parts.append(f"collections={'all' if row.collections is None else ','.join(row.collections)}")
    if row.full_scores:
        parts.append("full-scores")
    if row.concurrency is not None:
        parts.append(f"concurrency={row.concurrency}")
    parts.append(f"scopes={','.join(row.scopes)}")
    parts.append(f"created={row.created_at:%Y-%m-%dT%H:%MZ}")
    if row.last_used_at is not None:
        parts.append(f"used={row.last_used_at:%Y-%m-%dT%H:%MZ}")
    if row.expires_at is not None:
        parts.append(f"expires={row.expires_at:%Y-%m-%dT%H:%MZ}")
    if row.revoked_at is not None:
        parts.append(f"revoked={row.revoked_at:%Y-%m-%dT%H:%MZ}")
    return "  ".join(parts)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it after `id=`.")],
    data: Data = None,
) -> None:
    """Revoke a key; running servers notice within a second."""

    async def work(ring: KeyRing) -> None:
        await ring.revoke(key_id)

    _with_ring(data, work)
    typer.echo(f"Key {key_id} is revoked.", err=True)


def _refuse_unknown(collections: list[str]) -> None:
    """A misspelt collection would make a key that opens nothing."""
    if not collections:
        return
    from reward_server.server.engine import load_scenarios

    settings = load_settings()
    known = set(load_scenarios(settings.scenarios, settings.libraries).catalog.collections)
    for slug in collections:
        if slug not in known:
            told = f"there is no collection {slug!r}; there are {', '.join(sorted(known))}."
            raise typer.BadParameter((told + meant(slug, known)).removesuffix("."))


def _with_ring(data: Path | None, work: Callable[[KeyRing], Awaitable[Result]]) -> Result:
    """Open the keys of the data folder for one piece of work."""

    async def with_keys(store: Store) -> Result:
        from reward_server.auth.key_ring import KeyRing
        from reward_server.auth.pepper import pepper_of
        from reward_server.clock import SystemClock

        return await work(KeyRing(store, SystemClock(), pepper_of(load_settings({"data": data}))))

    return with_store(data, with_keys)


def with_store(data: Path | None, work: Callable[[Store], Awaitable[Result]]) -> Result:
    """Open the store of the data folder for one piece of work."""
    return asyncio.run(_run(data, work))


async def _run(data: Path | None, work: Callable[[Store], Awaitable[Result]]) -> Result:
    from reward_server.store.migrate import migrate
    from reward_server.store.store import Store

    settings = load_settings({"data": data})
    await migrate(settings.database)
    store = await Store.open(settings.database)
    try:
        return await work(store)
    finally:
        await store.close()
