"""The signals that end a server."""

from __future__ import annotations

import os
import signal

import pytest

from reward_server.server.signals import Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_heard_and_afterwards_does_what_it_did(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with Signals() as signals:
            signals.hear(lambda given, _: heard.append(given))
            os.kill(os.getpid(), number)
            assert signals.first == number
        assert heard == [number]
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_under_nohup_a_terminal_that_is_closed_is_no_matter() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            signals.hear(lambda *_: None)
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.first is None
    finally:
        signal.signal(signal.SIGHUP, before)
