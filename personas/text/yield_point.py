"""Points at which long reading pauses where its thread is told to: to let others have their turn, or to be stopped.

Reading a long text takes seconds, and nothing in it waits for anything. So it says now and then that this would be a
good moment; a thread that was told what to do then does it, all others go on at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Here(threading.local):
    """The call that a thread makes at a yield point."""

    pause: Callable[[], None] | None = None


_here = _Here()


def pauses_by(pause: Callable[[], None] | None) -> None:
    """From now on this thread calls `pause` where it may pause; what that raises ends the reading."""
    _here.pause = pause


def yield_point() -> None:
    """Let the thread pause here, if it was told to: nothing is half done, and no lock is held."""
    if _here.pause is not None:
        _here.pause()
