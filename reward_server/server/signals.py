"""The signals that end the server, heard from its first request until everything is closed.

While the server starts they end the process as they would any other: there is nothing to finish yet. A terminal that is
closed sends SIGHUP, which under `nohup` is no matter, and reloads where something listens to it (`hear_hangup`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import FrameType
from typing import Any, Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """A block in which they may be heard; afterwards they do what they did before."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The one that came first."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def hear(self, answer: Callable[[int, FrameType | None], None]) -> None:
        """From now on call this."""

        def heard(number: int, frame: FrameType | None) -> None:
            self.first = self.first or number
            answer(number, frame)

        for each in ENDING:
            if each == signal.SIGHUP and signal.getsignal(each) != signal.SIG_DFL:
                continue
            self._before[each] = signal.signal(each, heard)


def hear_hangup(stack: AsyncExitStack, answer: Callable[[], None]) -> None:
    """Call this on SIGHUP, until the stack is closed."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, answer)
    stack.callback(loop.remove_signal_handler, signal.SIGHUP)
