"""One HTTP attempt, read by both clients: request headers in, answer or error out.

Holds what the sync and async drivers share so that they cannot drift apart; does no I/O itself.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic

import httpx2

from trainer_client.calls import AnswerT, Call
from trainer_client.connection import Connection
from trainer_client.errors import ConnectionFailed, DeadlineExceeded, LabsError, error_from_answer
from trainer_client.retry import parse_retry_after
from trainer_client.version import __version__

USER_AGENT = f"labs-trainer-client/{__version__}"
# Servers commonly close idle connections after 5 s; letting go a little earlier avoids racing them.
KEEPALIVE_S = 4.0


@dataclass(frozen=True)
class HttpRequest:
    """One request as it goes out."""

    method: str
    url: str
    host: str
    headers: httpx2.Headers = field(repr=False)
    query: Mapping[str, str] | None = None
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class HttpReply:
    """A response, whatever its status."""

    status: int
    headers: httpx2.Headers = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class RawResponse(Generic[AnswerT]):
    """A success with its HTTP side: what `with_raw_response` gives."""

    status_code: int
    headers: httpx2.Headers
    content: bytes = field(repr=False)
    retries_taken: int
    _answer: AnswerT = field(repr=False)

    @property
    def request_id(self) -> str | None:
        """The server's name for the request, for its log."""
        return self.headers.get("x-request-id")

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode()

    def json(self) -> Any:
        """The body as plain JSON types."""
        return json.loads(self.content)

    def parse(self) -> AnswerT:
        """The typed answer."""
        return self._answer


def request_of(call: Call[AnswerT], connection: Connection, default_headers: httpx2.Headers) -> HttpRequest:
    """The request of a call: the client's headers, then the caller's own, then the call's."""
    headers = headers_of(connection, default_headers)
    headers.update(call.headers())
    return HttpRequest(call.method, connection.url + call.path, connection.host, headers, call.query or None, call.body)


def headers_of(connection: Connection, default_headers: httpx2.Headers) -> httpx2.Headers:
    """The headers of every request: the client's, then the caller's own."""
    headers = httpx2.Headers({"Accept": "application/json", "User-Agent": USER_AGENT})
    if connection.api_key is not None:
        headers["Authorization"] = f"Bearer {connection.api_key}"
    headers.update(default_headers)
    return headers


def limits(max_connections: int) -> httpx2.Limits:
    """The pool: every connection may be kept."""
    return httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_connections, keepalive_expiry=KEEPALIVE_S
    )


def answer_of(call: Call[AnswerT], received: HttpReply, retries_taken: int) -> RawResponse[AnswerT]:
    """The answer, parsed, or the error the server sent."""
    headers = received.headers
    if received.status == 200:
        answer = call.read(received.body, headers.get("x-request-id"))
        return RawResponse(received.status, headers, received.body, retries_taken, answer)
    raise refusal(received.status, headers, received.body)


def refusal(status: int, headers: httpx2.Headers, body: bytes) -> LabsError:
    """The error that the server sent in place of an answer."""
    return error_from_answer(status, headers, body, parse_retry_after(headers.get("retry-after"), datetime.now(UTC)))


def transport_failure(error: httpx2.TransportError | httpx2.DecodingError, sent: HttpRequest) -> LabsError:
    """The error of an attempt that got no answer; its text says where, and what went wrong."""
    if isinstance(error, httpx2.TimeoutException):
        return attempt_timed_out(sent)
    return ConnectionFailed(
        f"{_what(sent)} got no answer from {sent.host}: {_reason(error)}.", code="connection_failed"
    )


def attempt_timed_out(sent: HttpRequest) -> DeadlineExceeded:
    """The error of an attempt that took too long."""
    return DeadlineExceeded(f"{_what(sent)} was not answered in time by {sent.host}.", code="timeout")


def _what(sent: HttpRequest) -> str:
    return f"{sent.method} {httpx2.URL(sent.url).path}"


def _reason(error: BaseException) -> str:
    """The failure in words; the library's own text is the last resort, as it may be empty."""
    chain = list(_chain(error))
    for link in chain:
        match link:
            case socket.gaierror():
                return "its name cannot be resolved (check the address)"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not trusted ({link.verify_message})"
            case ssl.SSLError():
                return f"no TLS connection could be made ({link.args[-1]}; check http or https)"
            case ConnectionRefusedError():
                return "the connection was refused (is the server running there?)"
            case ConnectionResetError() | BrokenPipeError() | httpx2.RemoteProtocolError():
                return "the connection was broken off"
    texts = [str(link).strip().splitlines()[0] for link in chain if str(link).strip()]
    return f"{type(error).__name__}: {texts[0]}" if texts else type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, groups opened."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        pending += [
            *(link.exceptions if isinstance(link, BaseExceptionGroup) else ()),
            link.__cause__,
            link.__context__,
        ]
