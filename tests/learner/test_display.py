"""What is shown while a run works: on a terminal what is going on now, elsewhere only what stays."""

from __future__ import annotations

import io

import pytest

from learner.display import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    display = Display()
    display.now("step 1")
    display.now("step 2")
    display.say("done")
    display.clear()
    return stream.getvalue()


def test_on_a_terminal_what_is_going_on_gives_way_to_the_next_and_to_what_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(Terminal(), monkeypatch) == "\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[Kdone\n"


def test_elsewhere_only_what_stays_is_written_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []

    class Pipe(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    assert shown(Pipe(), monkeypatch) == "done\n"
    assert flushed == ["done\n"]
