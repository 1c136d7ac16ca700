"""`labs judges spending`: what each lab spent on language models, day by day, beside what it may spend."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from reward_server.cli.tables import name_columns, show, wide_console

if TYPE_CHECKING:
    from reward_server.settings import Settings
    from reward_server.store.records import Ceiling, Spend, SpendingRow

NANO = 1_000_000_000
NONE = "none"


def spending(
    days: Annotated[int, typer.Option(min=1, max=366, help="Number of days (UTC), including today.")] = 7,
    lab: Annotated[str | None, typer.Option(help="Only this lab.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)
    ] = None,
) -> None:
    """Show the spending on language models by lab and day: calls, tokens, money, budget, and the rest of it."""
    from reward_server.llm.build import ceiling_of
    from reward_server.settings import load_settings

    settings = load_settings({"data": data})
    now = datetime.now(UTC)
    rows = asyncio.run(_read(settings, now.date() - timedelta(days=days - 1), now))
    shown = [row for row in rows if lab in (None, row.lab_id)]
    console = wide_console()
    if not shown:
        who = "no lab has" if lab is None else f"the lab {lab} has not"
        console.print(f"In the last {days} days {who} asked a language model.", markup=False, highlight=False)
        return
    priced = settings.llm_usd_per_mtok_in is not None and settings.llm_usd_per_mtok_out is not None
    show(table(shown, ceiling_of(settings), priced=priced), console)


async def _read(settings: Settings, since: date, now: datetime) -> list[SpendingRow]:
    from reward_server.store.migrate import migrate
    from reward_server.store.store import Store

    await migrate(settings.database)
    store = await Store.open(settings.database)
    try:
        async with store.reading() as work:
            return await work.spending.since(since, now)
    finally:
        await store.close()


def table(rows: list[SpendingRow], ceiling: Ceiling, *, priced: bool) -> Table:
    """A line for each lab and day. Without prices nobody knows what was paid, and 0 would look like an answer."""
    found = Table()
    name_columns(found, "lab", "day")
    for heading in ("calls", "tokens", "USD", "booked", "budget", "left"):
        found.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        found.add_row(
            row.lab_id,
            row.day.isoformat(),
            f"{row.calls:,}",
            f"{row.spent.tokens:,}",
            _usd(row.spent.nano_usd) if priced or row.spent.nano_usd else "no price",
            f"{row.booked.tokens:,}" if row.booked.tokens else "",
            _budget(ceiling),
            _left(ceiling, row.spent, row.booked),
        )
    return found


def _budget(ceiling: Ceiling) -> str:
    lines = [] if ceiling.tokens is None else [f"{ceiling.tokens:,} tokens"]
    lines += [] if ceiling.nano_usd is None else [f"{_usd(ceiling.nano_usd)} USD"]
    return "\n".join(lines) or NONE


def _left(ceiling: Ceiling, *taken: Spend) -> str:
    """The rest that a further question would find; a day may pass its budget by what was on its way at once."""
    lines = []
    if ceiling.tokens is not None:
        lines.append(f"{max(0, ceiling.tokens - sum(each.tokens for each in taken)):,} tokens")
    if ceiling.nano_usd is not None:
        lines.append(f"{_usd(max(0, ceiling.nano_usd - sum(each.nano_usd for each in taken)))} USD")
    return "\n".join(lines) or NONE


def _usd(nano_usd: int) -> str:
    return f"{nano_usd / NANO:,.4f}"
