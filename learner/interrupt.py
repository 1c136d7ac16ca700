"""Ending in two steps: the first Ctrl-C asks the loop to end after the running update, the second ends it at once.

SIGTERM, which batch systems and containers send before they kill, asks as the first Ctrl-C does, however often it
comes. Only the main thread of a process hears signals, and a signal that was ignored or that another library handles
stays as it is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_DEFAULTS: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@contextmanager
def first_one_waits(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Within: `say` is called at the first signal, and what is yielded tells whether there was one."""
    asked = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        asked = True
        say()

    here = threading.current_thread() is threading.main_thread()
    heard = [each for each, default in _DEFAULTS.items() if here and signal.getsignal(each) == default]
    for each in heard:
        signal.signal(each, hear)
    try:
        yield lambda: asked
    finally:
        for each in heard:
            signal.signal(each, _DEFAULTS[each])
