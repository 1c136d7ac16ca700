"""The server's HTTP/1.1 connection: uvicorn's, with a limit on heads, an envelope for what is not HTTP, no upgrades.

The parser would read a request line and headers without end, and slower with every packet, before any code of
ours sees the request or its key. A head that is too long is refused, one that does not come is hung up on.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from reward_server.api.errors import envelope
from reward_server.cli.deaf_parser import DeafParser
from reward_server.errors import InvalidRequest
from reward_server.ids import new_request_id

MAX_HEAD_BYTES = 64 * 1024
"""Of a request line and headers; what arrives in their first packet is not counted."""
HEAD_DEADLINE_S = 30.0


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    _in_head = True
    _head_began = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parser: DeafParser = DeafParser(self)  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went away."""
        self._stop_timer()
        super().connection_lost(exc)

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
        super().on_message_begin()
        self._in_head, self._head_began, self._head_bytes = True, True, 0
        self._start_timer()

    def on_headers_complete(self) -> None:
        """A head is complete: from here on the application's limits hold."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is complete, its body included."""
        if not self.parser.stops_early:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read as a request, and hang up."""
        request_id = new_request_id()
        body = envelope(request_id, msg, InvalidRequest.code)
        head = (
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[400] + head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._hang_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self) -> None:
        # An answer to the request before may still be on its way; it is the client's to finish that head.
        if self._in_head and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
