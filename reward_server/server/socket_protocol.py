"""The server's WebSocket connection: uvicorn's, counted and bounded as HTTP connections are."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from reward_server.api.socket_access import BUSY, LAB, SHARE
from reward_server.limits.bytes_in_flight import LabBytes
from reward_server.server.connections import Connections

MAX_MESSAGE_BYTES = 4_000_000
PING_S = 20.0
PONG_S = 60.0
LOOK_EVERY_S = 0.05
"""How often is looked whether a socket that is to be closed still has operations in work."""
MESSAGE_S = 30.0
"""Time for the next part of a message that keeps others of its lab waiting."""


class BoundedSocketProtocol(WebSocketsSansIOProtocol):
    """One connection, after its handshake was asked for."""

    def __init__(self, *given: Any, connections: Connections, address: str, **named: Any) -> None:
        super().__init__(*given, **named)
        self._all = connections
        self.address = address
        """Where it comes from, without the port."""
        self._queued_bytes = 0
        self._weight = 0
        """What the lab's bytes in flight hold for it: what arrived, and was not taken by the application."""
        self._waits = False
        self._late: asyncio.TimerHandle | None = None

    @property
    def lab(self) -> str | None:
        """The lab whose socket it is; None before it was accepted."""
        found: str | None = getattr(self, "scope", {}).get("state", {}).get(LAB)
        return found

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
        share = self._share()
        if share is not None:
            weight, self._weight = self._weight, 0
            share.change(-weight)
            self._is_whole(share)

    async def send(self, message: Any) -> None:
        """Send on; a handshake that was refused is complete, too.

        Uvicorn takes it for one that the application forgot, and whoever has no key could write errors into the log.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def data_received(self, data: bytes) -> None:
        """Read on, if the lab has room."""
        self._all.stirs(self)
        super().data_received(data)
        self._weigh()

    def send_receive_event_to_app(self) -> None:
        """A message is whole."""
        self._queued_bytes += sum(map(len, self.frames))
        super().send_receive_event_to_app()

    async def receive(self) -> Any:
        """The next message, for the application, which counts it from here on."""
        message = await super().receive()
        if self.queue.empty():
            self._queued_bytes = 0
        self._weigh()
        return message

    def read_on(self) -> None:
        """There is room again, or it is this one's turn to finish its message without."""
        self._waits = False
        share = self._share()
        if share is not None and share.is_full:
            self._hurry()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _hurry(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(MESSAGE_S, self.hang_up)

    def _share(self) -> LabBytes | None:
        found: LabBytes | None = getattr(self, "scope", {}).get("state", {}).get(SHARE)
        return found

    def _weigh(self) -> None:
        """Count what arrived; stop reading where the lab has no room for more."""
        share = self._share()
        if share is None or self.disconnected:
            return
        weight = len(self.conn.reader.buffer) + sum(map(len, self.frames)) + self._queued_bytes
        change, self._weight = weight - self._weight, weight
        share.change(change)
        if self._queued_bytes:
            self._is_whole(share)
        elif self._late is not None:
            self._hurry()
        elif weight and not self._waits and not share.may_read(self) and not self.transport.is_closing():
            self._waits = True
            self.transport.pause_reading()
            share.pause(self)

    def _is_whole(self, share: LabBytes) -> None:
        """It has a message to be worked on, and keeps nobody waiting any more."""
        self._waits = False
        if self._late is not None:
            self._late.cancel()
            self._late = None
        share.finish(self)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._all.waits(self)

    def resume_writing(self) -> None:
        """The client caught up."""
        super().resume_writing()
        self._all.reads(self)
