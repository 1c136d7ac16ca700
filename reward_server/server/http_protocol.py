"""The server's HTTP/1.1 connection: uvicorn's, with bounds, an envelope for what is not HTTP, and WebSockets.

The parser would read a request line and headers without end, and slower with every packet, before any code of
ours sees the request or its key. A head that is too long is refused, one that does not come is hung up on. So is a
client that sends more and more requests ahead of their answers; how many may be connected is `connections`' business.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from reward_server.api.context import ADMITTED
from reward_server.api.errors import envelope, wait_of
from reward_server.api.routes import sockets
from reward_server.compat import openenv_socket
from reward_server.errors import InvalidRequest, LabsError, Overloaded
from reward_server.ids import new_request_id
from reward_server.server.connections import Connections
from reward_server.server.socket_protocol import BoundedSocketProtocol
from reward_server.server.upgrade_ignoring_parser import UpgradeIgnoringParser

MAX_HEAD_BYTES = 64 * 1024
"""Of a request line and headers; what arrives in their first packet is not counted."""
HEAD_DEADLINE_S = 30.0
SOCKETS = tuple(path.encode() for path in (sockets.PATH, openenv_socket.SOCKET_PATH))
"""How paths end that have WebSockets: what is in front of them is a proxy's."""
MAX_AHEAD = 16
"""Requests that wait on one connection for the answers of earlier ones."""
UNKNOWN_ADDRESS = "-"
LAST_REQUEST_S = 0.5
"""Of a server that ends: the time for a request that was sent before its client could know."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    _in_head = True
    _head_began = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _lab: str | None = None
    """Of the request before the last one."""
    _is_last: bool = False
    """The server ends: there is no request after this one."""

    def __init__(self, *given: Any, connections: Connections | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parser: UpgradeIgnoringParser = UpgradeIgnoringParser(self)  # type: ignore[assignment]
        self._all = Connections() if connections is None else connections
        self._is_unread = False

    @property
    def address(self) -> str:
        """The address it comes from, without the port."""
        return self.client[0] if self.client else UNKNOWN_ADDRESS

    @property
    def lab(self) -> str | None:
        """The lab that asked last on it; None before a request had a key."""
        found: str | None = None if self.cycle is None else self.cycle.scope["state"].get(ADMITTED)
        return found or self._lab

    @property
    def is_answering(self) -> bool:
        """True if a request of a lab is being worked on, and its answer is not just waiting to be read."""
        if self.cycle is None or self.cycle.response_complete or self._is_unread:
            return False
        return bool(self.cycle.scope["state"].get(ADMITTED))

    @property
    def unread_bytes(self) -> int:
        """Bytes that were written and are not read yet, beyond what the system holds."""
        return self.transport.get_write_buffer_size()

    def hang_up(self) -> None:
        """End it at once; what was not read is lost."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head, if there is a place."""
        super().connection_made(transport)
        if self._all.enter(self):
            self._start_timer()
        else:
            self._refuse(503, Overloaded())

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went away."""
        self._stop_timer()
        self._all.leave(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Answer what is here or on its way, and close.

        A connection is not closed at once while nothing is asked on it: a request may have been sent that was not read
        yet, and the client would be told of a broken connection instead of its answer.
        """
        self._is_last = True
        if self._is_idle:
            self.loop.call_later(LAST_REQUEST_S, self._close_idle)
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._is_unread = True
        self._all.waits(self)

    def resume_writing(self) -> None:
        """The client caught up."""
        super().resume_writing()
        self._is_unread = False
        self._all.reads(self)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the head is too long already."""
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response("The request line and headers are too long.")
            return
        super().data_received(data)
        if self._in_head and not self._head_began:
            self._head_bytes += len(data)
        self._head_began = False

    def on_message_begin(self) -> None:
        """A head begins."""
        self._lab = self.lab
        super().on_message_begin()
        self._in_head, self._head_began, self._head_bytes = True, True, 0
        self._start_timer()
        self._all.stirs(self)

    def on_headers_complete(self) -> None:
        """A head is complete: from here on the application's limits hold."""
        self._in_head = False
        self._stop_timer()
        if len(self.pipeline) >= MAX_AHEAD:
            # There is no other way to stop the parser, which may have thousands of heads in one packet.
            self.hang_up()
            raise _TooFarAhead
        super().on_headers_complete()
        if self._is_last and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """A request is complete, its body included."""
        if not self.parser.stops_early:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read as a request, and hang up."""
        if not self.transport.is_closing():
            self._refuse(400, InvalidRequest(msg))

    def _should_upgrade(self) -> bool:
        """True if this is a handshake for a path that has WebSockets."""
        if self.ws_protocol_class is None or not self.url.partition(b"?")[0].rstrip(b"/").endswith(SOCKETS):
            return False
        return self.scope["method"] == "GET" and self._get_upgrade() == b"websocket"

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over, with its place."""
        self._all.leave(self)
        self._stop_timer()
        make_protocol: Any = partial(BoundedSocketProtocol, connections=self._all, address=self.address)
        self.ws_protocol_class = make_protocol
        super().handle_websocket_upgrade()

    def _refuse(self, status: int, error: LabsError) -> None:
        request_id = new_request_id()
        wait_s = wait_of(error)
        body = envelope(request_id, error.message, error.code, retry_after_s=wait_s)
        retry = "" if wait_s is None else f"retry-after: {wait_s}\r\n"
        head = (
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{retry}"
            f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._hang_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_idle(self) -> None:
        if self._is_idle:
            self.transport.close()

    def _hang_up(self) -> None:
        # An answer to the request before may still be on its way; it is the client's to finish that head.
        if self._in_head:
            self._close_idle()


class _TooFarAhead(Exception):  # noqa: N818 (nobody sees it)
    """Stops the parser."""
