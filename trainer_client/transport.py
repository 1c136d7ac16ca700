"""The two ways a request travels, with and without an event loop: all that the two clients do differently.

Each sends one attempt within one clock, pauses, and runs several jobs. `client.py` is made from `async_client.py`
(`unasync`), so what is not here cannot differ between them.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import httpx2

from trainer_client.errors import BadRequest, LabsError
from trainer_client.exchange import HttpReply, HttpRequest, attempt_timed_out, limits, transport_failure

BATCH_REQUESTS_AT_ONCE = 4

T = TypeVar("T")
HttpT = TypeVar("HttpT", bound=httpx2.Client | httpx2.AsyncClient)
AsyncSleep = Callable[[float], Awaitable[None]]
SyncSleep = Callable[[float], None]


class _PoolPerProcess(Generic[HttpT]):
    """A pool that a forked child makes anew: two processes on one connection would read each other's answers."""

    def __init__(self, make: Callable[[], HttpT], http_client: HttpT | None, *, is_callers: bool) -> None:
        self.is_callers = is_callers
        self._make = make
        self._http = http_client or make()
        self._used_by: int | None = None

    @property
    def http(self) -> HttpT:
        """The pool of this process."""
        if self._belongs_to_another():
            if self.is_callers:
                raise BadRequest(
                    "This client was made before a fork with an `http_client` or `transport` of your own, whose "
                    "connections both processes would share: make client and `http_client` in the child.",
                    code="made_before_fork",
                )
            leave_behind(self._http)
            self._http, self._used_by = self._make(), os.getpid()
        return self._http

    def _in_use(self) -> HttpT:
        http = self.http
        self._used_by = os.getpid()
        return http

    def _belongs_to_another(self) -> bool:
        return self._used_by not in (None, os.getpid())


_left_behind: list[object] = []


def leave_behind(connections: object) -> None:
    """Keep what belongs to a parent process: its destructor could say goodbye on the parent's connections."""
    _left_behind.append(connections)


class AsyncWire(_PoolPerProcess[httpx2.AsyncClient]):
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
        self.sleep = sleep or asyncio.sleep

        def make() -> httpx2.AsyncClient:
            return httpx2.AsyncClient(
                limits=limits(max_connections),
                trust_env=not loopback,
                transport=transport,
                verify=_tls(loopback=loopback),
            )

        super().__init__(make, http_client, is_callers=http_client is not None or transport is not None)

    async def close(self) -> None:
        """Close the pool, unless it is a parent process's."""
        if not self._belongs_to_another():
            await self._http.aclose()

    async def attempt(self, sent: HttpRequest, timeout_s: float | None) -> HttpReply:
        """Send a request once."""
        try:
            # One clock around the whole attempt; the library's own timeouts are per read.
            async with asyncio.timeout(timeout_s):
                response = await self._in_use().request(
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
        return HttpReply(response.status_code, response.headers, response.content)

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


class SyncWire(_PoolPerProcess[httpx2.Client]):
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
        self.sleep = sleep or time.sleep

        def make() -> httpx2.Client:
            return httpx2.Client(
                limits=limits(max_connections),
                trust_env=not loopback,
                transport=transport,
                verify=_tls(loopback=loopback),
            )

        super().__init__(make, http_client, is_callers=http_client is not None or transport is not None)

    def close(self) -> None:
        """Close the pool, unless it is a parent process's."""
        if not self._belongs_to_another():
            self._http.close()

    def attempt(self, sent: HttpRequest, timeout_s: float | None) -> HttpReply:
        """Send a request once."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        body = bytearray()
        try:
            with self._in_use().stream(
                sent.method, sent.url, params=sent.query, content=sent.body, headers=sent.headers, timeout=timeout_s
            ) as response:
                # The library's timeout is per read: a server that drips bytes is stopped here.
                for chunk in response.iter_bytes():
                    body += chunk
                    if ends_at is not None and time.monotonic() > ends_at:
                        raise attempt_timed_out(sent)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise transport_failure(error, sent) from None
        return HttpReply(response.status_code, response.headers, bytes(body))

    def each(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Do all jobs, one after the other."""
        return [job() for job in jobs]


@functools.cache
def _tls(*, loopback: bool) -> ssl.SSLContext:
    """The certificates that TLS trusts, read once: it takes longer than hundreds of calls."""
    return httpx2.create_ssl_context(trust_env=not loopback)


def _first_of(failures: BaseExceptionGroup[LabsError]) -> LabsError:
    """The first error of a group: callers catch a `LabsError`, not a group of them."""
    first = failures.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first
