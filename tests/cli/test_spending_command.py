"""`labs judges spending`: a line for each lab and day, beside what it may spend."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_server.cli.judges import app
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.records import BookingRow, Spend
from reward_server.store.store import Store

NOW = datetime.now(UTC)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["spending", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def cells(output: str) -> list[list[str]]:
    """The table, a list for each printed line."""
    lines = [line for line in output.splitlines() if "\u2502" in line]
    return [[cell.strip() for cell in line.split("\u2502")[1:-1]] for line in lines]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two labs asked today, one of them two days ago as well; one question is on its way."""

    async def fill() -> None:
        settings = Settings(data=tmp_path)
        await migrate(settings.database)
        store = await Store.open(settings.database)
        today = NOW.date()
        used = {
            ("acme", today): Spend(tokens=12_000, nano_usd=250_000_000),
            ("other", today): Spend(tokens=7),
            ("acme", today - timedelta(days=2)): Spend(tokens=99),
        }
        async with store.transaction() as work:
            for number, ((lab, day), spend) in enumerate(used.items()):
                await work.spending.settle(a_booking(f"settled-{number}", lab, day, Spend()), spend, calls=3)
            await work.spending.book(a_booking("under-way", "acme", today, Spend(tokens=1_000)), NOW)
        await store.close()

    asyncio.run(fill())
    return tmp_path


def a_booking(booking_id: str, lab: str, day: date, spend: Spend) -> BookingRow:
    runs_out_at = NOW + timedelta(hours=1)
    return BookingRow(booking_id=booking_id, lab_id=lab, day=day, spend=spend, runs_out_at=runs_out_at)


def test_each_lab_and_day_is_shown_beside_its_budget(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_LLM_DAILY_TOKENS", "20000")
    monkeypatch.setenv("LABS_LLM_DAILY_USD", "5")
    monkeypatch.setenv("LABS_LLM_PRICES", "3/15")
    shown = cells(run("--data", str(data)))
    today, before = NOW.date().isoformat(), (NOW.date() - timedelta(days=2)).isoformat()
    assert shown == [
        ["acme", before, "3", "99", "0.0000", "", "20,000 tokens", "19,901 tokens"],
        ["", "", "", "", "", "", "5.0000 USD", "5.0000 USD"],
        ["acme", today, "3", "12,000", "0.2500", "1,000", "20,000 tokens", "7,000 tokens"],
        ["", "", "", "", "", "", "5.0000 USD", "4.7500 USD"],
        ["other", today, "3", "7", "0.0000", "", "20,000 tokens", "19,993 tokens"],
        ["", "", "", "", "", "", "5.0000 USD", "5.0000 USD"],
    ]


def test_without_a_budget_or_prices_it_says_so(data: Path) -> None:
    shown = cells(run("--data", str(data), "--days", "2", "--lab", "other"))
    assert shown == [["other", NOW.date().isoformat(), "3", "7", "no price", "", "none", "none"]]


def test_names_and_numbers_stay_whole_where_there_is_no_room(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    piped = cells(run("--data", str(data)))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert cells(run("--data", str(data)).replace("\x1b[1m", "").replace("\x1b[0m", "")) == piped
    assert {row[0] for row in piped} == {"acme", "other"}
    assert all(NOW.strftime("%Y-") in row[1] for row in piped)


def test_who_asked_nothing_is_told_in_a_line(data: Path, tmp_path: Path) -> None:
    assert "the lab nobody has not asked" in run("--data", str(data), "--lab", "nobody")
    assert "no lab has asked" in run("--data", str(tmp_path / "empty"))
