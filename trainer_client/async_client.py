"""The asynchronous client. Belongs to one event loop; close it, or use it in an `async with` block.

`client.py`, the synchronous one, is made from this file: after a change run `python trainer_client/unasync.py`.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import httpx2

from trainer_client import batch
from trainer_client.agents import AsyncAgentsClient
from trainer_client.async_jobs import AsyncJobsClient
from trainer_client.async_training_runs import AsyncTrainingRunsClient
from trainer_client.calls import AnswerT, Call, ItemLike, TurnLike
from trainer_client.connection import Connection, resolve_connection
from trainer_client.errors import LabsError, PayloadTooLarge
from trainer_client.exchange import RawResponse, answer_of, request_of
from trainer_client.lab_calls import LabCalls
from trainer_client.methods import AsyncCaller
from trainer_client.operators import AsyncOperator
from trainer_client.raw import AsyncRawCalls
from trainer_client.retry import NOT_GIVEN, Attempts, NotGiven, RetryPolicy
from trainer_client.transport import AsyncSleep, AsyncWire
from trainer_client.wire import FailedTurn, PlayedTurn

if TYPE_CHECKING:
    from trainer_client.async_socket import AsyncEpisodeSocket

T = TypeVar("T")


class AsyncLabsClient(LabCalls, AsyncCaller):
    """Typed calls of the Labs API, retried where that is safe.

    Args:
        base_url: Default: LABS_URL, else the server on this machine.
        api_key: Default: LABS_API_KEY.
        timeout: Seconds one attempt may take (60). None: no limit.
        max_retries: How often a call is sent again after a failure that may pass (7).
        default_headers: Sent with every request.
        http_client: Your own client, for proxies, certificates or hooks. `close` closes it.
        retry: All limits of a call at once; `timeout` and `max_retries` change two of them.
        max_connections: Of the pool this client makes.
        transport: What the client it makes sends over, for tests.
        sleep: How it waits, for tests.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | NotGiven | None = NOT_GIVEN,
        max_retries: int | None = None,
        default_headers: Mapping[str, str] | None = None,
        http_client: httpx2.AsyncClient | None = None,
        retry: RetryPolicy | None = None,
        max_connections: int = 64,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: AsyncSleep | None = None,
    ) -> None:
        self._connection = resolve_connection(base_url, api_key)
        self._retry = (retry or RetryPolicy()).changed(timeout, max_retries)
        self._headers = httpx2.Headers(default_headers)
        # Not a generator with a state, which forked processes would share.
        self._random = random.SystemRandom()
        self._wire = AsyncWire(
            max_connections=max_connections,
            loopback=self._connection.loopback,
            transport=transport,
            http_client=http_client,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"AsyncLabsClient({self._connection.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pool, also of an `http_client` that was given."""
        await self._wire.close()

    @property
    def connection(self) -> Connection:
        """The server that this client talks to."""
        return self._connection

    @property
    def retry(self) -> RetryPolicy:
        """The limits of each call."""
        return self._retry

    @property
    def default_headers(self) -> httpx2.Headers:
        """The headers that are sent with every request besides the client's own."""
        return self._headers

    @property
    def max_connections(self) -> int:
        """Of the pool."""
        return self._wire.max_connections

    @property
    def http_client(self) -> httpx2.AsyncClient:
        """The pool; in a forked process one of its own."""
        return self._wire.http

    @property
    def has_own_transport(self) -> bool:
        """True if the caller said how requests travel."""
        return self._wire.is_callers

    def with_options(
        self,
        *,
        timeout: float | NotGiven | None = NOT_GIVEN,
        max_retries: int | None = None,
        deadline_s: float | NotGiven | None = NOT_GIVEN,
        default_headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
    ) -> Self:
        """The same client and pool with other options: `client.with_options(timeout=5).evaluate(...)`.

        `deadline_s` is how long a whole call may take, retries included. Headers are added to those of the client.
        """
        other = copy.copy(self)
        other._retry = self._retry.changed(timeout, max_retries, deadline_s)
        other._headers = httpx2.Headers({**self._headers, **httpx2.Headers(default_headers)})
        if api_key is not None:
            key = resolve_connection(self._connection.url, api_key).api_key
            other._connection = replace(self._connection, api_key=key)
        return other

    @property
    def with_raw_response(self) -> AsyncRawCalls:
        """The same calls, each giving status, headers and body beside the typed answer (`parse()`)."""
        return AsyncRawCalls(self._exchange)

    @property
    def operator(self) -> AsyncOperator:
        """Labs, keys and the audit log; takes an operator's key."""
        return AsyncOperator(self)

    @property
    def jobs(self) -> AsyncJobsClient:
        """Work in the background of the server."""
        return AsyncJobsClient(self, self._wire.sleep)

    def socket(self) -> AsyncEpisodeSocket:
        """Episodes over one WebSocket, many at once, until it is closed.

        Needs the extra `socket` of this package.
        """
        from trainer_client.async_socket import AsyncEpisodeSocket

        return AsyncEpisodeSocket(self)

    @property
    def agents(self) -> AsyncAgentsClient:
        """Policies that the server talks to, and how they stand beside each other."""
        return AsyncAgentsClient(self)

    @property
    def training_runs(self) -> AsyncTrainingRunsClient:
        """Runs of the bundled learner on the server."""
        return AsyncTrainingRunsClient(self, self._wire.sleep)

    # --- many requests in one call -------------------------------------------------------------

    async def batch_turns(
        self, items: Sequence[TurnLike], *, idempotency_key: str | None = None
    ) -> list[PlayedTurn | FailedTurn]:
        """One step of any number of episodes, in the order of the items `{"episode_id", "messages", ...}`.

        Sent in requests of at most 100, each with its number after the idempotency key. A turn that failed has a
        `code` and no reward.
        """
        jobs = [
            partial(self._turns, chunk, idempotency_key and f"{idempotency_key}-{number}")
            for number, chunk in enumerate(batch.split(items))
        ]
        return batch.join_turns(await self._wire.each(jobs))

    async def batch_evaluate(self, items: Sequence[ItemLike]) -> batch.BatchOutcome:
        """Score any number of conversations; sent in requests of at most 100."""
        jobs = [partial(self._parts, chunk) for chunk in batch.split(items)]
        return batch.join([part for parts in await self._wire.each(jobs) for part in parts])

    # --- sending -------------------------------------------------------------------------------

    async def _parts(self, items: Sequence[ItemLike]) -> list[batch.BatchPart]:
        try:
            return [batch.BatchPart(items, (await self.with_raw_response.batch_evaluate(items)).parse())]
        except PayloadTooLarge as error:
            if len(items) == 1:
                return [batch.BatchPart(items, error)]
            return [part for half in batch.halves(items) for part in await self._parts(half)]
        except LabsError as error:
            if not error.retryable:
                raise
            return [batch.BatchPart(items, error)]

    async def _turns(self, items: Sequence[TurnLike], key: str | None) -> batch.TurnsPart:
        try:
            return batch.TurnsPart(items, (await self.with_raw_response.batch_turns(items, key)).parse())
        except LabsError as error:
            if not error.retryable:
                raise
            return batch.TurnsPart(items, error)

    async def _send(self, call: Call[AnswerT]) -> AnswerT:
        return (await self._exchange(call)).parse()

    async def _exchange(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        sent = request_of(call, self._connection, self._headers)

        async def attempt(attempts: Attempts) -> RawResponse[AnswerT]:
            received = await self._wire.attempt(sent, attempts.timeout_s())
            return answer_of(call, received, attempts.failures)

        return await self._retried(attempt)

    async def _retried(self, attempt: Callable[[Attempts], Awaitable[T]]) -> T:
        attempts = Attempts(self._retry, time.monotonic, self._random)
        while True:
            try:
                return await attempt(attempts)
            except LabsError as failure:
                failure.host = self._connection.host
                pause_s = attempts.pause_s(failure)
            await self._wire.sleep(pause_s)
