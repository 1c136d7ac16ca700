"""The synchronous client. Safe to share between threads; close it, or use it in a `with` block."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import httpx2

from trainer_client import batch, calls
from trainer_client.calls import AnswerT, Call, ItemLike, MessageLike, RewardConfigLike
from trainer_client.connection import Connection, resolve_connection
from trainer_client.errors import LabsError, PayloadTooLarge
from trainer_client.exchange import answer_of, attempt_timed_out, client_headers, limits, transport_failure
from trainer_client.retry import Attempts, RetryPolicy
from trainer_client.wire import (
    CalibrationList,
    CatalogResponse,
    CollectionResponse,
    CompareResponse,
    CreateEpisodeResponse,
    EpisodeList,
    EpisodeResponse,
    EvaluateResponse,
    RankResponse,
    Role,
    ScenarioResponse,
    TurnResponse,
)


class LabsClient:
    """Typed calls of the Labs API, retried where that is safe."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        max_connections: int = 64,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = resolve_connection(base_url, api_key)
        self._retry = retry or RetryPolicy()
        self._random = random.Random()  # noqa: S311 - jitter, no secret
        self._sleep = sleep
        self._http = httpx2.Client(
            base_url=self._connection.url,
            headers=client_headers(self._connection),
            limits=limits(max_connections),
            trust_env=not self._connection.loopback,
            transport=transport,
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
        """Close the pool."""
        self._http.close()

    @property
    def connection(self) -> Connection:
        """Where this client talks to."""
        return self._connection

    @property
    def retry(self) -> RetryPolicy:
        """The limits of each call."""
        return self._retry

    def within(self, deadline_s: float) -> Self:
        """The same client and pool, with another deadline for each whole call."""
        other = copy.copy(self)
        other._retry = replace(self._retry, deadline_s=deadline_s)
        return other

    # --- the catalog ---------------------------------------------------------------------------

    def catalog(self) -> CatalogResponse:
        """All collections and scenarios this key may use."""
        return self._send(calls.catalog())

    def collection(self, slug: str) -> CollectionResponse:
        """One collection."""
        return self._send(calls.collection(slug))

    def scenario(self, collection_slug: str, slug: str) -> ScenarioResponse:
        """One scenario."""
        return self._send(calls.scenario(collection_slug, slug))

    def calibrations(self) -> CalibrationList:
        """The scales on which `reward_config.calibration` can show a reward."""
        return self._send(calls.calibrations())

    # --- episodes ------------------------------------------------------------------------------

    def create_episode(
        self,
        collection_slug: str,
        scenario_slug: str,
        *,
        seed: int | None = None,
        max_turns: int | None = None,
        observation_role: Role | None = None,
        persona: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        score_turns: bool = True,
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> CreateEpisodeResponse:
        """Start an episode."""
        return self._send(
            calls.create_episode(
                collection_slug,
                scenario_slug,
                seed=seed,
                max_turns=max_turns,
                observation_role=observation_role,
                persona=persona,
                metadata=metadata,
                score_turns=score_turns,
                reward_config=reward_config,
                idempotency_key=idempotency_key,
            )
        )

    def turn(
        self,
        episode_id: str,
        messages: str | MessageLike | Sequence[MessageLike],
        *,
        reward_config: RewardConfigLike | None = None,
        terminate: bool = False,
        idempotency_key: str | None = None,
    ) -> TurnResponse:
        """Say something in an episode and get the persona's answer."""
        return self._send(
            calls.turn(
                episode_id,
                messages,
                reward_config=reward_config,
                terminate=terminate,
                idempotency_key=idempotency_key,
            )
        )

    def get_episode(self, episode_id: str) -> EpisodeResponse:
        """An episode and its public transcript."""
        return self._send(calls.get_episode(episode_id))

    def list_episodes(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        collection_slug: str | None = None,
        status: str | None = None,
    ) -> EpisodeList:
        """One page of this lab's episodes."""
        return self._send(
            calls.list_episodes(limit=limit, cursor=cursor, collection_slug=collection_slug, status=status)
        )

    def delete_episode(self, episode_id: str) -> EpisodeResponse:
        """End an episode."""
        return self._send(calls.delete_episode(episode_id))

    # --- scoring -------------------------------------------------------------------------------

    def evaluate(
        self,
        collection_slug: str,
        scenario_slug: str,
        messages: Sequence[MessageLike],
        *,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        normalization_key: str | None = None,
        normalization_windows: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> EvaluateResponse:
        """Score one finished conversation."""
        return self._send(
            calls.evaluate(
                collection_slug,
                scenario_slug,
                messages,
                agent_role=agent_role,
                reward_config=reward_config,
                normalization_key=normalization_key,
                normalization_windows=normalization_windows,
                idempotency_key=idempotency_key,
            )
        )

    def batch_evaluate(self, items: Sequence[ItemLike]) -> batch.BatchOutcome:
        """Score any number of conversations; sent in requests of at most 100."""
        return batch.join([part for chunk in batch.split(items) for part in self._parts(chunk)])

    def compare(
        self,
        collection_slug: str,
        scenario_slug: str,
        messages_a: Sequence[MessageLike],
        messages_b: Sequence[MessageLike],
        *,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> CompareResponse:
        """Which of two conversations is better."""
        return self._send(
            calls.compare(
                collection_slug,
                scenario_slug,
                messages_a,
                messages_b,
                agent_role=agent_role,
                reward_config=reward_config,
                idempotency_key=idempotency_key,
            )
        )

    def rank(
        self,
        collection_slug: str,
        scenario_slug: str,
        responses: Mapping[str, Sequence[MessageLike]],
        *,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> RankResponse:
        """How 2 to 64 conversations, by id, compare with each other; the scores mean nothing outside the group."""
        return self._send(
            calls.rank(
                collection_slug,
                scenario_slug,
                responses,
                agent_role=agent_role,
                reward_config=reward_config,
                idempotency_key=idempotency_key,
            )
        )

    # --- sending -------------------------------------------------------------------------------

    def _parts(self, items: Sequence[ItemLike]) -> list[batch.Part]:
        try:
            return [batch.Part(items, self._send(calls.batch_evaluate(items)))]
        except PayloadTooLarge as error:
            if len(items) == 1:
                return [batch.Part(items, error)]
            return [part for half in batch.halves(items) for part in self._parts(half)]
        except LabsError as error:
            if not error.retryable:
                raise
            return [batch.Part(items, error)]

    def _send(self, call: Call[AnswerT]) -> AnswerT:
        attempts = Attempts(self._retry, time.monotonic, self._random)
        while True:
            timeout_s = attempts.timeout_s()
            try:
                return self._attempt(call, timeout_s)
            except LabsError as failure:
                pause_s = attempts.pause_s(failure)
            self._sleep(pause_s)

    def _attempt(self, call: Call[AnswerT], timeout_s: float) -> AnswerT:
        ends_at = time.monotonic() + timeout_s
        body = bytearray()
        try:
            with self._http.stream(
                call.method,
                call.path,
                params=call.query or None,
                content=call.body,
                headers=call.headers(),
                timeout=timeout_s,
            ) as response:
                # The library's timeout is per read: a server that drips bytes is stopped here.
                for chunk in response.iter_bytes():
                    body += chunk
                    if time.monotonic() > ends_at:
                        raise attempt_timed_out(call)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise transport_failure(error, call) from None
        return answer_of(call, response.status_code, response.headers, bytes(body))
