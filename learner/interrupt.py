"""Ending in two steps: the first Ctrl-C asks the loop to end after the running update, the second ends it at once.

SIGTERM, which batch systems and containers send before they kill, asks as the first Ctrl-C does, however often it
comes. Only the main thread of a process hears signals, and a signal that was ignored or that another library handles
stays as it is.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_DEFAULTS: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """The signals that came while a training ran."""

    def __init__(self, say: Callable[[], None]) -> None:
        """Call `say` at the first signal."""
        self._say = say
        self._asked = False
        self._cancel: Callable[[], object] | None = None

    def asked_to_end(self) -> bool:
        """True once there was a signal."""
        return self._asked

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in an event loop of its own.

        The second Ctrl-C cancels it, as `asyncio.run` does at the first, so that its connections are closed and its
        tasks end: an exception out of a signal handler would break through the middle of any of them.

        Raises:
            KeyboardInterrupt: after it was cancelled, or at a third Ctrl-C.
        """
        try:
            asyncio.run(self._cancellable(main))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal.

        Raises:
            KeyboardInterrupt: at the second Ctrl-C where there is nothing to cancel.
        """
        if not self._asked:
            self._asked = True
            self._say()
        elif number == signal.SIGINT:
            if self._cancel is None:
                raise KeyboardInterrupt
            cancel, self._cancel = self._cancel, None
            cancel()

    async def _cancellable(self, main: Coroutine[Any, Any, None]) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        # The signal may find the loop asleep.
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            await main
        finally:
            self._cancel = None


@contextmanager
def first_one_waits(say: Callable[[], None]) -> Iterator[Interrupts]:
    """Within: the first signal only asks to end; `say` is called then."""
    interrupts = Interrupts(say)
    here = threading.current_thread() is threading.main_thread()
    heard = [each for each, default in _DEFAULTS.items() if here and signal.getsignal(each) == default]
    for each in heard:
        signal.signal(each, interrupts.hear)
    try:
        yield interrupts
    finally:
        for each in heard:
            signal.signal(each, _DEFAULTS[each])
