"""`socket()` of the synchronous client: episodes over one WebSocket, which threads may share.

    with client.socket() as socket:
        episode = socket.create_episode("c", "s", seed=1)

It is the asynchronous one, in an event loop that runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trainer_client.async_socket import AsyncEpisodeSocket
from trainer_client.bridge import async_like
from trainer_client.calls import AnswerT, Call
from trainer_client.episodes import PlayCalls
from trainer_client.methods import SyncCaller
from trainer_client.transport import leave_behind

if TYPE_CHECKING:
    from trainer_client.client import LabsClient


class EpisodeSocket(PlayCalls, SyncCaller):
    """`create_episode`, `turn` and `delete_episode` over one connection, which is made when it is needed."""

    def __init__(self, client: LabsClient) -> None:
        if client.has_own_transport:
            raise ValueError(
                "socket() does not go through an `http_client` or `transport` of your own: "
                "use AsyncLabsClient with an httpx2.AsyncClient"
            )
        self._client = client
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call would make another one."""
        running, self._running = self._running, None
        if running is not None and running.process == os.getpid():
            running.stop()

    def _send(self, call: Call[AnswerT]) -> AnswerT:
        return self._current().send(call)

    def _current(self) -> _Running:
        running = self._running
        if running is not None and running.process != os.getpid():
            # A forked process has neither the thread nor, for sure, a lock that is free.
            leave_behind(running)
            self._lock, self._running = threading.Lock(), None
        with self._lock:
            if self._running is None:
                self._running = _Running(self._client)
            return self._running


class _Running:
    """An asynchronous socket with the thread that its loop runs in."""

    def __init__(self, client: LabsClient) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="labs-socket", daemon=True)
        self._thread.start()
        self._client = async_like(client)
        self._socket = AsyncEpisodeSocket(self._client)

    def send(self, call: Call[AnswerT]) -> AnswerT:
        done = asyncio.run_coroutine_threadsafe(self._socket._send(call), self._loop)
        try:
            return done.result()
        except BaseException:
            done.cancel()  # Ctrl-C: nobody waits any more
            raise

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        await self._socket.close()
        await self._client.close()
