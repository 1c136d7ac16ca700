"""Progress: a bar where somebody looks, a line now and then where nobody does."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from reward_server.cli.progress import EVERY, busy, shown


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with shown(Console(file=io.StringIO()), clock=lambda: now) as report:
        for second in range(100):
            now = float(second)
            report("training", second, 100)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        f"training: {n} of 100 after {n} s" for n in (int(EVERY), 2 * int(EVERY), 3 * int(EVERY))
    ]
    assert captured.out == ""


def test_a_terminal_gets_bars(capsys: pytest.CaptureFixture[str]) -> None:
    screen = io.StringIO()
    with shown(Console(file=screen, force_terminal=True, width=100)) as report:
        report("encoding", 1, 2)
        report("training", 5, 5)
    assert "encoding" in screen.getvalue()
    assert "5/5" in screen.getvalue()
    assert capsys.readouterr().err == ""


def test_what_cannot_be_counted_is_named_on_a_terminal_alone() -> None:
    screens = {is_terminal: io.StringIO() for is_terminal in (True, False)}
    for is_terminal, screen in screens.items():
        with busy(Console(file=screen, force_terminal=is_terminal, width=100), "looking"):
            pass
    assert "looking" in screens[True].getvalue()
    assert screens[False].getvalue() == ""
