"""Ctrl-C in two steps: the first asks the loop to end after the running update, the second ends at once.

Only the main thread of a process hears signals, and one that was started with interrupts ignored
stays deaf to them; in both cases nothing is changed and the loop is never asked to end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_one_waits(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Within: `say` is called at the first interrupt, and what is yielded tells whether there was one."""
    asked = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say()

    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if here else None
    if before is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
