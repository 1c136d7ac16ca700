"""`socket()` of the asynchronous client: episodes over one WebSocket, many at once.

    async with client.socket() as socket:
        episodes = await asyncio.gather(*(socket.create_episode("c", "s", seed=seed) for seed in range(100)))

Its calls are the client's own, with the same retries and errors. A connection that breaks is made again, and what was
not answered is sent again with its idempotency key, so no turn is played twice.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trainer_client.calls import AnswerT, Call
from trainer_client.episodes import PlayCalls
from trainer_client.errors import DeadlineExceeded, error_from_envelope
from trainer_client.exchange import headers_of
from trainer_client.methods import AsyncCaller
from trainer_client.retry import Attempts
from trainer_client.socket_line import SocketLine
from trainer_client.transport import leave_behind

if TYPE_CHECKING:
    from trainer_client.async_client import AsyncLabsClient

PATH = "/episodes/ws"


class AsyncEpisodeSocket(PlayCalls, AsyncCaller):
    """`create_episode`, `turn` and `delete_episode` over one connection, which is made when it is needed."""

    def __init__(self, client: AsyncLabsClient) -> None:
        self._client = client
        self._line: SocketLine | None = None
        self._process = os.getpid()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the next call would make another one."""
        line, self._line = self._line, None
        if line is not None and self._process == os.getpid():
            await line.close()

    async def _send(self, call: Call[AnswerT]) -> AnswerT:
        async def attempt(attempts: Attempts) -> AnswerT:
            try:
                async with asyncio.timeout(attempts.timeout_s()):
                    reply = await self._current().ask(call)
            except TimeoutError:
                host = self._client.connection.host
                raise DeadlineExceeded(
                    f"A socket operation was not answered in time by {host}.", code="timeout"
                ) from None
            return answer_of(call, reply)

        return await self._client._retried(attempt)

    def _current(self) -> SocketLine:
        if self._process != os.getpid():
            leave_behind(self._line)
            self._line, self._process = None, os.getpid()
        if self._line is None or self._line.is_over:
            client = self._client
            headers = headers_of(client.connection, client.default_headers)
            url = client.connection.url + PATH
            self._line = SocketLine(client.http_client, url, headers, client.retry.attempt_timeout_s)
        return self._line


def answer_of(call: Call[AnswerT], reply: dict[str, Any]) -> AnswerT:
    """The typed answer to a call, or the error that the server sent."""
    status, request_id = reply.get("status"), reply.get("request_id")
    if isinstance(status, int):
        raise error_from_envelope(status, reply, request_id, reply.get("retry_after_s"))
    try:
        return call.answer.model_validate(reply)
    except ValueError as error:
        raise call.malformed(request_id) from error
