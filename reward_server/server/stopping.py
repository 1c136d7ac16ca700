"""Ends the server once it was told to: time to finish, then the truth about what is not finished, then the end.

For `drain_s` requests in work are finished and answered. What is not finished then is given up: it is answered with a
503, unless it is being stored at that moment, which is waited for. Who could not be answered by twice that time (the
disk hangs, a client does not read) is cut off without an answer: nobody is told what is not known.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from reward_server.logs.logger import get_logger

if TYPE_CHECKING:
    from fastapi import FastAPI

log = get_logger(__name__)


class Stopping:
    """The end of one server."""

    def __init__(self, app: FastAPI, drain_s: float) -> None:
        self._services = app.state.services
        self._in_work = app.state.in_work
        self._drain_s = drain_s
        self._loop = asyncio.get_running_loop()
        self._giving_up: asyncio.Task[None] | None = None
        self._last: threading.Timer | None = None

    def begin(self, exit_code: int) -> None:
        """The server was told to end. May be called from a signal handler; later calls change nothing."""
        self._services.stopping.set()
        if self._last is None:
            self._last = threading.Timer(2 * self._drain_s, _end_now, (exit_code,))
            self._last.daemon = True
            self._last.start()
            self._loop.call_soon_threadsafe(self._give_up_later)

    def _give_up_later(self) -> None:
        self._giving_up = asyncio.create_task(self._give_up(), name="give-up")

    async def _give_up(self) -> None:
        await asyncio.sleep(self._drain_s)
        await asyncio.gather(self._services.outliving.stop(), self._in_work.stop())


def _end_now(exit_code: int) -> None:
    """End at once: everything answered is stored, as after a loss of power."""
    log.warning("stopped_late")
    os._exit(exit_code)
