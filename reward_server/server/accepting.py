"""Accepting connections under the operating system's limit on open files.

There is a file for each connection, so the limit is raised as far as it may be, and connections are bounded to what is
left beside the server's own files. If accepting fails all the same, asyncio's loop reports every attempt, with a
traceback, thousands of times a second: here, one line now and then replaces them. uvloop, which the server runs on
where it is installed, closes such a connection and logs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from reward_server.logs.logger import get_logger

OWN_FILES = 200
"""Of the database, its threads, logs, models and calls of providers."""
TOLD_EVERY_S = 10.0

log = get_logger(__name__)


def room_for(connections: int) -> int:
    """So many of the connections that are wanted can be open at once."""
    try:
        import resource
    except ImportError:  # pragma: no cover (there is no such limit)
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            log.warning("few_open_files", allowed=soft, connections=max(1, soft - OWN_FILES))
            return max(1, soft - OWN_FILES)
    return connections


def watch_accepting(loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Tell of connections that could not be accepted in one line now and then; everything else as before."""
    told, failed = -TOLD_EVERY_S, 0

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told, failed
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
            return
        failed += 1
        if monotonic() - told >= TOLD_EVERY_S:
            told = monotonic()
            log.error("cannot_accept_connections", failed=failed, error=type(context.get("exception")).__name__)
            failed = 0

    loop.set_exception_handler(handle)
