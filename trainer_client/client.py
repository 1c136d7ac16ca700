"""The synchronous client. Safe to share between threads; close it, or use it in a `with` block.

Made from `async_client.py` by `unasync`: edit that one.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import httpx2

from trainer_client import batch
from trainer_client.agents import AgentsClient
from trainer_client.calls import AnswerT, Call, ItemLike, TurnLike
from trainer_client.connection import Connection, resolve_connection
from trainer_client.errors import LabsError, PayloadTooLarge
from trainer_client.exchange import RawResponse, answer_of, request_of
from trainer_client.jobs import JobsClient
from trainer_client.lab_calls import LabCalls
from trainer_client.methods import SyncCaller
from trainer_client.operators import Operator
from trainer_client.raw import RawCalls
from trainer_client.retry import NOT_GIVEN, Attempts, NotGiven, RetryPolicy
from trainer_client.training_runs import TrainingRunsClient
from trainer_client.transport import SyncSleep, SyncWire
from trainer_client.wire import FailedTurn, PlayedTurn

if TYPE_CHECKING:
    from trainer_client.sync_socket import EpisodeSocket

T = TypeVar("T")


class LabsClient(LabCalls, SyncCaller):
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
        http_client: httpx2.Client | None = None,
        retry: RetryPolicy | None = None,
        max_connections: int = 64,
        transport: httpx2.BaseTransport | None = None,
        sleep: SyncSleep | None = None,
    ) -> None:
        self._connection = resolve_connection(base_url, api_key)
        self._retry = (retry or RetryPolicy()).changed(timeout, max_retries)
        self._headers = httpx2.Headers(default_headers)
        # Not a generator with a state, which forked processes would share.
        self._random = random.SystemRandom()
        self._wire = SyncWire(
            max_connections=max_connections,
            loopback=self._connection.loopback,
            transport=transport,
            http_client=http_client,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"LabsClient({self._connection.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pool, also of an `http_client` that was given."""
        self._wire.close()

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
    def http_client(self) -> httpx2.Client:
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
    def with_raw_response(self) -> RawCalls:
        """The same calls, each giving status, headers and body beside the typed answer (`parse()`)."""
        return RawCalls(self._exchange)

    @property
    def operator(self) -> Operator:
        """Labs, keys and the audit log; takes an operator's key."""
        return Operator(self)

    @property
    def jobs(self) -> JobsClient:
        """Work in the background of the server."""
        return JobsClient(self, self._wire.sleep)

    def socket(self) -> EpisodeSocket:
        """Episodes over one WebSocket, many at once, until it is closed.

        Needs the extra `socket` of this package.
        """
        from trainer_client.sync_socket import EpisodeSocket

        return EpisodeSocket(self)

    @property
    def agents(self) -> AgentsClient:
        """Policies that the server talks to, and how they stand beside each other."""
        return AgentsClient(self)

    @property
    def training_runs(self) -> TrainingRunsClient:
        """Runs of the bundled learner on the server."""
        return TrainingRunsClient(self, self._wire.sleep)

    # --- many requests in one call -------------------------------------------------------------

    def batch_turns(
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
        return batch.join_turns(self._wire.each(jobs))

    def batch_evaluate(self, items: Sequence[ItemLike]) -> batch.BatchOutcome:
        """Score any number of conversations; sent in requests of at most 100."""
        jobs = [partial(self._parts, chunk) for chunk in batch.split(items)]
        return batch.join([part for parts in self._wire.each(jobs) for part in parts])

    # --- sending -------------------------------------------------------------------------------

    def _parts(self, items: Sequence[ItemLike]) -> list[batch.BatchPart]:
        try:
            return [batch.BatchPart(items, (self.with_raw_response.batch_evaluate(items)).parse())]
        except PayloadTooLarge as error:
            if len(items) == 1:
                return [batch.BatchPart(items, error)]
            return [part for half in batch.halves(items) for part in self._parts(half)]
        except LabsError as error:
            if not error.retryable:
                raise
            return [batch.BatchPart(items, error)]

    def _turns(self, items: Sequence[TurnLike], key: str | None) -> batch.TurnsPart:
        try:
            return batch.TurnsPart(items, (self.with_raw_response.batch_turns(items, key)).parse())
        except LabsError as error:
            if not error.retryable:
                raise
            return batch.TurnsPart(items, error)

    def _send(self, call: Call[AnswerT]) -> AnswerT:
        return (self._exchange(call)).parse()

    def _exchange(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        sent = request_of(call, self._connection, self._headers)

        def attempt(attempts: Attempts) -> RawResponse[AnswerT]:
            received = self._wire.attempt(sent, attempts.timeout_s())
            return answer_of(call, received, attempts.failures)

        return self._retried(attempt)

    def _retried(self, attempt: Callable[[Attempts], T]) -> T:
        attempts = Attempts(self._retry, time.monotonic, self._random)
        while True:
            try:
                return attempt(attempts)
            except LabsError as failure:
                failure.host = self._connection.host
                pause_s = attempts.pause_s(failure)
            self._wire.sleep(pause_s)
