"""The server's WebSocket connection: uvicorn's, counted and bounded as HTTP connections are."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from reward_server.api.socket_access import BUSY
from reward_server.server.connections import Connections

MAX_MESSAGE_BYTES = 4_000_000
PING_S = 20.0
PONG_S = 60.0
LOOK_EVERY_S = 0.05
"""How often is looked whether a socket that is to be closed still has operations in work."""


class BoundedSocketProtocol(WebSocketsSansIOProtocol):
    """One connection, after its handshake was asked for."""

    def __init__(self, *given: Any, connections: Connections, address: str, **named: Any) -> None:
        super().__init__(*given, **named)
        self._all = connections
        self.address = address
        """Where it comes from, without the port."""

    @property
    def is_answering(self) -> bool:
        """True if operations of a lab are being worked on, and their answers are not just waiting to be read."""
        scope = getattr(self, "scope", None)
        return bool(scope and self.writable.is_set() and scope["state"].get(BUSY))

    @property
    def unread_bytes(self) -> int:
        """Bytes that were written and are not read yet, beyond what the system holds."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def hang_up(self) -> None:
        """End it at once; what was not read is lost."""
        self.transport.abort()

    def shutdown(self) -> None:
        """The server stops: close it once its operations in work are answered."""
        scope = getattr(self, "scope", None)
        if scope and scope.get("state", {}).get(BUSY) and not self.transport.is_closing():
            self.loop.call_later(LOOK_EVERY_S, self.shutdown)
        else:
            super().shutdown()

    def connection_made(self, transport: Any) -> None:
        """It takes the place that its HTTP connection had."""
        super().connection_made(transport)
        if not self._all.enter(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went away."""
        self._all.leave(self)
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        """Send on; a handshake that was refused is complete, too.

        Uvicorn takes it for one that the application forgot, and whoever has no key could write errors into the log.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._all.stirs(self)
        super().data_received(data)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._all.waits(self)

    def resume_writing(self) -> None:
        """The client caught up."""
        super().resume_writing()
        self._all.reads(self)
