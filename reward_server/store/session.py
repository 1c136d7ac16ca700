"""The one way statements reach the database, for readers and for the writer.

A statement that has begun is always waited for, even when the task that asked for it is cancelled: an
interrupted driver call would cost the whole connection, and with it the work of others that share
its transaction. After a statement failed the session takes no more; it can only be left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import CursorResult, Executable
from sqlalchemy.ext.asyncio import AsyncConnection

from reward_server.store.faults import store_faults

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Session:
    """Runs statements, one after the other, in a transaction that somebody else began and will end."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._running: asyncio.Future[CursorResult[Any]] | None = None
        self._usable = True

    async def execute(self, statement: Executable, parameters: Parameters | None = None) -> CursorResult[Any]:
        """Run one statement; the result is complete in memory."""
        if not self._usable:
            raise RuntimeError("this unit of work is busy or over, or one of its statements failed")
        self._running = asyncio.ensure_future(self._connection.execute(statement, parameters))
        self._usable = False
        with store_faults():
            result = await asyncio.shield(self._running)
        self._usable = True
        return result

    async def settle(self) -> None:
        """Refuse further statements and wait for the one that may still be running."""
        self._usable = False
        if self._running is not None and not self._running.done():
            await asyncio.wait([self._running])
        if self._running is not None and not self._running.cancelled():
            # An abandoned failure was asked for by nobody; reading it keeps the event loop from reporting it.
            self._running.exception()
