"""The two ways a request travels, with and without an event loop: all that the two clients do differently.

Each sends one attempt within one clock, pauses, and runs several jobs. `client.py` is made from `async_client.py`
(`unasync`), so what is not here cannot differ between them.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import httpx2

from trainer_client.errors import LabsError
from trainer_client.exchange import Received, Sent, attempt_timed_out, limits, transport_failure

BATCH_REQUESTS_AT_ONCE = 4

T = TypeVar("T")
AsyncSleep = Callable[[float], Awaitable[None]]
SyncSleep = Callable[[float], None]


class AsyncWire:
    """Over an `httpx2.AsyncClient`: one it makes, or the caller's."""

    def __init__(
        self,
        *,
        max_connections: int,
        loopback: bool,
        transport: httpx2.AsyncBaseTransport | None,
        http_client: httpx2.AsyncClient | None,
        sleep: AsyncSleep | None,
    ) -> None:
        if http_client is not None and transport is not None:
            raise ValueError("give `http_client` or `transport`, not both")
        self.max_connections = max_connections
        self.is_callers = http_client is not None or transport is not None
        self.sleep = sleep or asyncio.sleep
        self.http = http_client or httpx2.AsyncClient(
            limits=limits(max_connections), trust_env=not loopback, transport=transport, verify=_tls(loopback=loopback)
        )

    async def close(self) -> None:
        """Close the pool."""
        await self.http.aclose()

    async def attempt(self, sent: Sent, timeout_s: float | None) -> Received:
        """Send a request once."""
        try:
            # One clock around the whole attempt; the library's own timeouts are per read.
            async with asyncio.timeout(timeout_s):
                response = await self.http.request(
                    sent.method,
                    sent.url,
                    params=sent.query,
                    content=sent.body,
                    headers=sent.headers,
                    timeout=timeout_s,
                )
        except TimeoutError:
            raise attempt_timed_out(sent) from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise transport_failure(error, sent) from None
        return Received(response.status_code, response.headers, response.content)

    async def each(self, jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Do all jobs, a few at once; the first failure ends the others."""
        room = asyncio.Semaphore(BATCH_REQUESTS_AT_ONCE)

        async def one(job: Callable[[], Awaitable[T]]) -> T:
            async with room:
                return await job()

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(job)) for job in jobs]
        except* LabsError as failures:
            raise _first_of(failures) from None
        return [task.result() for task in tasks]


class SyncWire:
    """Over an `httpx2.Client`: one it makes, or the caller's."""

    def __init__(
        self,
        *,
        max_connections: int,
        loopback: bool,
        transport: httpx2.BaseTransport | None,
        http_client: httpx2.Client | None,
        sleep: SyncSleep | None,
    ) -> None:
        if http_client is not None and transport is not None:
            raise ValueError("give `http_client` or `transport`, not both")
        self.max_connections = max_connections
        self.is_callers = http_client is not None or transport is not None
        self.sleep = sleep or time.sleep
        self.http = http_client or httpx2.Client(
            limits=limits(max_connections), trust_env=not loopback, transport=transport, verify=_tls(loopback=loopback)
        )

    def close(self) -> None:
        """Close the pool."""
        self.http.close()

    def attempt(self, sent: Sent, timeout_s: float | None) -> Received:
        """Send a request once."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        body = bytearray()
        try:
            with self.http.stream(
                sent.method, sent.url, params=sent.query, content=sent.body, headers=sent.headers, timeout=timeout_s
            ) as response:
                # The library's timeout is per read: a server that drips bytes is stopped here.
                for chunk in response.iter_bytes():
                    body += chunk
                    if ends_at is not None and time.monotonic() > ends_at:
                        raise attempt_timed_out(sent)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise transport_failure(error, sent) from None
        return Received(response.status_code, response.headers, bytes(body))

    def each(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Do all jobs, one after the other."""
        return [job() for job in jobs]


@functools.cache
def _tls(*, loopback: bool) -> ssl.SSLContext:
    """What TLS trusts, read once: it takes longer than hundreds of calls."""
    return httpx2.create_ssl_context(trust_env=not loopback)


def _first_of(failures: BaseExceptionGroup[LabsError]) -> LabsError:
    """The first error of a group: callers catch a `LabsError`, not a group of them."""
    first = failures.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first
