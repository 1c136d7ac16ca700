"""What is printed into a file or a pipe has one line for each row and each message."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rich.table import Table

import reward_server.cli as commands
from reward_server.cli.tables import show, wide_console

MODULES = sorted(Path(commands.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("columns", ["40", "80", None])
def test_a_pipe_gets_whole_lines(
    columns: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    console = wide_console()
    table = Table("reason")
    table.add_row("word " * 60)
    show(table, console)
    console.print("word " * 60)
    assert sum("word" in line for line in capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "tables.py"], ids=lambda path: path.stem)
def test_no_command_writes_to_standard_output_through_a_console_of_80_columns(path: Path) -> None:
    made = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console"
    ]
    assert all(any(keyword.arg == "stderr" for keyword in call.keywords) for call in made)


def test_a_terminal_keeps_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    assert wide_console().width == 50
