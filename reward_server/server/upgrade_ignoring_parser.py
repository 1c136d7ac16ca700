"""An HTTP/1.1 parser that is deaf to `Upgrade`, but for WebSockets where there are some (RFC 9110, 7.8).

The parser below does not ignore it: it takes what follows the head for another protocol, and the body would be lost
(https://github.com/Kludex/uvicorn/issues/2722).
Clients that would rather speak HTTP/2 (Java's own is one) ask for it with every request. So where that happens, a
second parser is told as much of the head as says how long the body is, and reads on.
"""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class UpgradeIgnoringParser:
    """Has the part of httptools' parser that uvicorn calls."""

    def __init__(self, listener: HttpToolsProtocol) -> None:
        self._listener = listener
        self._parser = _parser(listener)

    def feed_data(self, data: bytes) -> None:
        """Read on; `httptools.HttpParserError` for what is not HTTP."""
        while (rest := self._rest(data)) is not None:
            data = rest
            self._parser = _parser(_AfterTheHead(self._listener))
            framing = [b"%s: %s\r\n" % (name, value) for name, value in self._listener.headers if name in _FRAMING]
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(framing))

    def _rest(self, data: bytes) -> bytes | None:
        """The bytes after a head with an `Upgrade`; None where there is no such head in the data."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.should_upgrade():
                raise
            [read] = upgrade.args
            return data[read:]
        return None

    def should_upgrade(self) -> bool:
        """True if the request asks for a WebSocket, of a path that has them."""
        return bool(self._listener._should_upgrade())

    @property
    def stops_early(self) -> bool:
        """True if a message is called complete only because its head asks for another protocol."""
        return self._parser.should_upgrade()

    def get_http_version(self) -> str:
        """Of the request."""
        return self._parser.get_http_version()

    def get_method(self) -> bytes:
        """Of the request."""
        return self._parser.get_method()

    def should_keep_alive(self) -> bool:
        """True if the client keeps the connection for further requests."""
        return self._parser.should_keep_alive()


class _AfterTheHead:
    """Passes on everything but the head that the parser is told first: the listener has heard that one."""

    def __init__(self, listener: HttpToolsProtocol) -> None:
        self._listener = listener
        self._heard = False
        self.on_body = listener.on_body
        self.on_message_complete = listener.on_message_complete

    def on_message_begin(self) -> None:
        if self._heard:
            self._listener.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._heard:
            self._listener.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heard:
            self._listener.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._heard:
            self._listener.on_headers_complete()
        self._heard = True


def _parser(listener: object) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(listener)
    # As uvicorn has it: what comes after a last request is no error before that one is answered.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
