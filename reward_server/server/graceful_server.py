"""uvicorn's server, which lets those in whose connections were there before it ended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import uvicorn


class GracefulServer(uvicorn.Server):
    """A server that resets no connection when it ends.

    To its client, a connection is made as soon as the system has put it into the queue of the listening socket. What is
    left in the queue when that socket is closed is reset, and the request that was sent on it has no answer.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let in who waits at the listening `sockets`, then end as uvicorn does."""
        listeners = sockets or []
        # Nothing may happen between these two: a connection that is made meanwhile would be lost.
        waiting = [connection for listener in listeners for connection in _queue_of(listener)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        await super().shutdown(listeners)

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def _queue_of(listener: socket.socket) -> Iterator[socket.socket]:
    """The connections of a listening socket that nobody has accepted yet."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # none is left, or there are no files for more
            return
        yield connection
