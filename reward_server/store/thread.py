"""A thread that owns one database connection, so that no statement ever blocks the event loop.

Work is done in the order it was handed in, and always to its end: cancelling the task that waits for it does
not interrupt the driver. The connection is opened when it is first needed, and again after `reset`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine

Result = TypeVar("Result")


class ConnectionThread:
    """A lane on a thread of its own: what SQLite's blocking driver needs."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._connection: Connection | None = None
        self._closed = False

    def submit(self, work: Callable[[Connection], Result]) -> asyncio.Future[Result]:
        """Have the thread do this next."""
        return asyncio.get_running_loop().run_in_executor(self._executor, self._do, work)

    async def reset(self) -> None:
        """Undo what was not committed and forget the connection: after a failure it may be in any state."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._drop)

    async def close(self) -> None:
        """Close the connection and end the thread; closing again does nothing."""
        if not self._closed:
            self._closed = True
            await self.reset()
            self._executor.shutdown()

    def _do(self, work: Callable[[Connection], Result]) -> Result:
        if self._connection is None:
            self._connection = self._engine.connect()
        return work(self._connection)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Closes without a rollback statement, which a broken connection would refuse.
            connection.invalidate()
            connection.close()
