"""One WebSocket to `/episodes/ws`: operations out, answers in as they are done, told apart by their numbers."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import httpx2

try:
    from httpx2.websockets import AsyncWebSocketSession, HTTPXWSException, WebSocketDisconnect
except ImportError:
    raise ImportError("socket() needs wsproto: install the client as `labs-trainer-client[socket]`") from None

from trainer_client.calls import Call
from trainer_client.errors import BadRequest, ConnectionFailed, LabsError, PayloadTooLarge
from trainer_client.exchange import refusal

AT_ONCE = 64
"""Operations ahead of their answers; the server leaves more unread."""
MOST_BYTES = 4_000_000
"""Of an operation, as the server takes them."""
MOST_ANSWER_BYTES = 16_000_000

Json = dict[str, Any]


class SocketLine:
    """A connection from when it is made until it is broken; another one takes its place then."""

    def __init__(self, http: httpx2.AsyncClient, url: str, headers: httpx2.Headers, timeout_s: float | None) -> None:
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._numbers = count()
        self._out: asyncio.Queue[str] = asyncio.Queue()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(_looked_at)
        self._life = asyncio.create_task(self._live(http, url, headers, timeout_s))

    @property
    def is_over(self) -> bool:
        """True if nothing can be asked any more."""
        return self._life.done()

    async def ask(self, call: Call[Any]) -> Json:
        """The server's reply to a call, whatever it says; a `LabsError` where the connection breaks first."""
        async with self._places:
            # Shielded: whoever gives up leaves the connection to the others.
            await asyncio.shield(self._opened)
            if self.is_over:
                raise _broken()
            number = next(self._numbers)
            message = message_of(call, number)
            reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
            self._waiting[number] = reply
            self._out.put_nowait(message)
            try:
                return await reply
            finally:
                del self._waiting[number]

    async def close(self) -> None:
        """Say goodbye."""
        self._life.cancel()
        with suppress(asyncio.CancelledError):
            await self._life

    async def _live(self, http: httpx2.AsyncClient, url: str, headers: httpx2.Headers, timeout_s: float | None) -> None:
        failure: LabsError = _broken()
        try:
            async with _connected(http, url, headers, timeout_s) as socket:
                self._opened.set_result(None)
                writer = asyncio.create_task(self._write(socket))
                try:
                    while True:
                        self._take(await socket.receive_text())
                finally:
                    writer.cancel()
        except Exception as error:  # noqa: BLE001 - of any kind: whoever waits is told
            failure = _failure(error)
        finally:
            self._end(failure)

    async def _write(self, socket: AsyncWebSocketSession) -> None:
        # Here alone: a sender that is cancelled half-way would leave half a message on the connection.
        with suppress(HTTPXWSException):
            while True:
                await socket.send_text(await self._out.get())

    def _take(self, text: str) -> None:
        reply = json.loads(text)
        waiting = self._waiting.get(reply.get("ref"))
        # Nobody waits any more for what took too long.
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def _end(self, failure: LabsError) -> None:
        futures: list[asyncio.Future[Any]] = [self._opened, *self._waiting.values()]
        for future in futures:
            if not future.done():
                future.set_exception(failure)


@asynccontextmanager
async def _connected(
    http: httpx2.AsyncClient, url: str, headers: httpx2.Headers, timeout_s: float | None
) -> AsyncIterator[AsyncWebSocketSession]:
    # Not `http.websocket`: of a handshake that is refused it keeps the status alone, not what the server says.
    headers = headers.copy()
    headers.update(_UPGRADE | {"Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()})
    async with http.stream("GET", url, headers=headers, timeout=timeout_s) as response:
        if response.status_code != 101:
            raise refusal(response.status_code, response.headers, await response.aread())
        stream = response.extensions["network_stream"]
        async with AsyncWebSocketSession(stream, max_message_size_bytes=MOST_ANSWER_BYTES) as socket:
            yield socket


_UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}


def message_of(call: Call[Any], number: int) -> str:
    """An operation as it is sent; its number comes first, as the server reads no more of one that it refuses."""
    if call.operation is None:
        raise BadRequest(f"{call.method} {call.path} does not go over a socket.", code="invalid_request")
    head = {"ref": number, **call.operation}
    if call.idempotency_key is not None:
        head["idempotency_key"] = call.idempotency_key
    body = b"{}" if call.body is None else call.body
    message = json.dumps(head | json.loads(body), separators=(",", ":"))
    if len(message) > MOST_BYTES:
        raise PayloadTooLarge(f"An operation may have {MOST_BYTES:,} bytes.", code="too_large")
    return message


def _failure(error: Exception) -> LabsError:
    """The error of a connection that was not made, or that broke."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, LabsError) else _broken(error)


def _broken(error: Exception | None = None) -> ConnectionFailed:
    match error:
        case None:
            why = "it was closed"
        case WebSocketDisconnect():
            why = f"the server closed it with {error.code}"
        case _:
            why = str(error) or type(error).__name__
    return ConnectionFailed(f"The socket for episodes broke: {why}.", code="connection_failed")


def _looked_at(opened: asyncio.Future[None]) -> None:
    """Look at an exception that nobody waited for: it is no error of the loop's."""
    if not opened.cancelled():
        opened.exception()
