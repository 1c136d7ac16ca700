"""From a synchronous program into asynchronous code: a client like the caller's, and a loop to run it in.

An `http_client` or a transport of the caller's knows no event loop; requests then go through it in threads, so that
its proxies, certificates and hooks count here, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import httpx2

from trainer_client.async_client import AsyncLabsClient
from trainer_client.client import LabsClient

T = TypeVar("T")


def async_like(client: LabsClient, *, connections: int = 0) -> AsyncLabsClient:
    """A client of the same server, key, headers and limits, with room for at least so many connections."""
    connection = client.connection
    return AsyncLabsClient(
        connection.url,
        connection.api_key or "",
        retry=client.retry,
        default_headers=client.default_headers,
        max_connections=max(client.max_connections, connections),
        transport=_InThreads(client.http_client, connections) if client.has_own_transport else None,
    )


def run_to_end(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, from code that does not await; in a thread where a loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    return _in_a_thread(main)


def _in_a_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    stopped = threading.Event()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()

    async def watched() -> T:
        begun.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        if stopped.is_set():
            raise asyncio.CancelledError
        return await main()

    with ThreadPoolExecutor(1, thread_name_prefix="labs-play") as pool:
        try:
            # Within the `try`: the thread may be far before the call that started it returns.
            return pool.submit(contextvars.copy_context().run, asyncio.run, watched()).result()
        except BaseException:
            # Ctrl-C, or a notebook's "stop": what is going on tidies up after itself, then the thread ends.
            stopped.set()
            if begun.done():
                loop, task = begun.result()
                with contextlib.suppress(RuntimeError):  # The loop is closed: it had ended by itself.
                    if task is not None:
                        loop.call_soon_threadsafe(task.cancel)
            raise


class _InThreads(httpx2.AsyncBaseTransport):
    """Sends through a synchronous client, one thread for each request that is under way."""

    def __init__(self, client: httpx2.Client, at_once: int) -> None:
        self._client = client
        self._pool = ThreadPoolExecutor(max(1, at_once), thread_name_prefix="labs-http")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        send = partial(
            self._client.request,
            request.method,
            request.url,
            headers=request.headers,
            content=await request.aread(),
            timeout=httpx2.Timeout(**request.extensions["timeout"]),
        )
        response = await asyncio.get_running_loop().run_in_executor(self._pool, send)
        # The body is decoded already.
        headers = [(name, value) for name, value in response.headers.items() if name not in _OF_THE_CODED_BODY]
        return httpx2.Response(response.status_code, headers=headers, content=response.content)

    async def aclose(self) -> None:
        """Let the threads go; the client is the caller's."""
        self._pool.shutdown(wait=False, cancel_futures=True)


_OF_THE_CODED_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
