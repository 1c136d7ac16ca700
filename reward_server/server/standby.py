"""`labs serve --standby`: a second server that has loaded everything and waits for the first to end.

On a SQLite folder it waits for the lock of that folder and then for the address; with PostgreSQL for the address alone.
It never asks the first server how it is: a process that has ended, by itself or by `kill -9`, has let go of both.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import FrameType

import typer

from reward_server.errors import ConfigurationError
from reward_server.server.signals import Signals
from reward_server.settings import Settings
from reward_server.store.engine import sqlite_file
from reward_server.store.occupancy import succeeding

LOOK_S = 0.02
"""How often a waiting standby tries the address."""
ADDRESS_S = 10.0
"""How long one that has the folder waits for the address: whoever has that is not the server it waited for."""

Bind = Callable[[], socket.socket]


class StandbyCancelled(Exception):  # noqa: N818 (nothing went wrong)
    """A standby was told to end before its turn came."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ListeningAddress:
    """The address that a server listens on, and the wait for it."""

    def __init__(self, settings: Settings, bind: Bind) -> None:
        self._settings = settings
        self._bind = bind
        self._listener: socket.socket | None = None

    @property
    def listener(self) -> socket.socket:
        """The socket that is bound."""
        if self._listener is None:
            raise RuntimeError("nothing is bound yet")
        return self._listener

    def bind(self, stack: AsyncExitStack) -> None:
        """Take the address now; `ConfigurationError` if another process has it."""
        self._listener = self._bind()
        stack.callback(self._listener.close)

    async def turn(self, stack: AsyncExitStack) -> None:
        """Return when the database, if that is a SQLite file, and the address are this server's.

        Raises:
            StandbyCancelled: a signal that ends processes came first.
            ConfigurationError: the folder became free, and something else has the address.
        """
        ended: asyncio.Event = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(ended.set)

        with Signals() as signals:
            signals.hear(end)
            typer.echo(f"Labs stands by, loaded: it serves when the server of {self._settings.data} has ended")
            sys.stdout.flush()
            taking = asyncio.create_task(self._take(stack))
            ending = asyncio.create_task(ended.wait())
            try:
                await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending.cancel()
                taking.cancel()
            if signals.first is not None:
                raise StandbyCancelled(signals.first)
        await taking

    async def _take(self, stack: AsyncExitStack) -> None:
        url = self._settings.database
        await stack.enter_async_context(succeeding(url))
        until = time.monotonic() + ADDRESS_S if sqlite_file(url) else float("inf")
        while True:
            try:
                self.bind(stack)
            except ConfigurationError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(LOOK_S)
            else:
                return
