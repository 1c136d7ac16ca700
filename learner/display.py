"""Display of a run while it works: lines that stay, and below them, on a terminal, what is going on now.

A pipe or a file gets the lines alone, each as soon as it is said.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Say = Callable[[str], None]
"""Takes a line that stays."""
Now = Callable[[str], None]
"""Takes what is going on now; it gives way to the next one, and to a line that stays."""

_BACK = "\r\x1b[K"
"""To the beginning of the terminal's line, and what stands there is gone."""


BAR_WIDTH = 20


def silent(_: str) -> None:
    """For who has nobody to tell what is going on."""


class Display:
    """Writes to standard output."""

    def __init__(self, *, speaks: bool = True) -> None:
        self._speaks = speaks
        self._is_busy = False
        self._bar: Callable[[], str] = str

    def follow(self, done: Callable[[], int], total: int) -> None:
        """From here on, what is going on stands behind a bar of updates and the time that is left."""
        started, first = time.monotonic(), done()
        self._bar = lambda: progress_bar(done(), total, first, time.monotonic() - started) + "  "

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.clear()
        if self._speaks:
            print(line, flush=True)

    def now(self, what: str) -> None:
        """Show what is going on, in place of what was."""
        if self._speaks and sys.stdout.isatty():
            self._is_busy = True
            print(f"{_BACK}{self._bar()}{what}", end="", flush=True)

    def clear(self) -> None:
        """Take away what is going on."""
        if self._is_busy:
            self._is_busy = False
            print(_BACK, end="", flush=True)


def progress_bar(done: int, total: int, first: int, seconds: float) -> str:
    """`[####......] 4/10, 3 min left`; `first` is where this process began, for the pace."""
    filled = BAR_WIDTH * min(done, total) // total
    text = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{total}"
    if done <= first or done >= total:
        return text
    left = seconds / (done - first) * (total - done)
    return f"{text}, {left / 60:.0f} min left" if left >= 60 else f"{text}, {left:.0f} s left"
