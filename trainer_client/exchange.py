"""One HTTP attempt, read by both clients: request headers in, answer or error out.

Holds what the sync and async drivers share so that they cannot drift apart; does no I/O itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import httpx2

from trainer_client.calls import AnswerT, Call
from trainer_client.connection import Connection
from trainer_client.errors import ConnectionFailed, DeadlineExceeded, LabsError, error_from_answer
from trainer_client.retry import parse_retry_after

USER_AGENT = "labs-trainer-client/0.1"
# Servers commonly close idle connections after 5 s; letting go a little earlier avoids racing them.
KEEPALIVE_S = 4.0


def client_headers(connection: Connection) -> dict[str, str]:
    """Headers of every request."""
    headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
    if connection.api_key is not None:
        headers["Authorization"] = f"Bearer {connection.api_key}"
    return headers


def limits(max_connections: int) -> httpx2.Limits:
    """The pool: every connection may be kept."""
    return httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_connections, keepalive_expiry=KEEPALIVE_S
    )


def answer_of(call: Call[AnswerT], status: int, headers: Mapping[str, str], body: bytes) -> AnswerT:
    """The typed answer, or the error the server sent."""
    if status == 200:
        return call.read(body, headers.get("x-request-id"))
    retry_after_s = parse_retry_after(headers.get("retry-after"), datetime.now(UTC))
    raise error_from_answer(status, headers, body, retry_after_s)


def transport_failure(error: httpx2.TransportError | httpx2.DecodingError, call: Call[AnswerT]) -> LabsError:
    """The error of an attempt that got no answer. Its text names the kind of failure, not the address."""
    what = f"{call.method} {call.path}"
    if isinstance(error, httpx2.TimeoutException):
        return attempt_timed_out(call)
    return ConnectionFailed(f"{what} got no answer: {type(error).__name__}.", code="connection_failed")


def attempt_timed_out(call: Call[AnswerT]) -> DeadlineExceeded:
    """The error of an attempt that took too long."""
    return DeadlineExceeded(f"{call.method} {call.path} was not answered in time.", code="timeout")
