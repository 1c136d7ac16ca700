"""The synchronous client. Safe to share between threads; close it, or use it in a `with` block.

Made from `async_client.py` by `unasync`: edit that one.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

import httpx2

from trainer_client import batch, calls, operator_calls, preferences, webhooks
from trainer_client.agents import Agents
from trainer_client.calls import AnswerT, Call, EpisodeLike, ItemLike, MessageLike, RewardConfigLike, TurnLike
from trainer_client.connection import Connection, resolve_connection
from trainer_client.errors import LabsError, PayloadTooLarge
from trainer_client.exchange import RawResponse, answer_of, request_of
from trainer_client.jobs import Jobs
from trainer_client.operators import Operator
from trainer_client.paging import Page
from trainer_client.raw import RawCalls
from trainer_client.retry import NOT_GIVEN, Attempts, NotGiven, RetryPolicy
from trainer_client.training_runs import TrainingRuns
from trainer_client.transport import SyncSleep, SyncWire
from trainer_client.wire import (
    AgreementResponse,
    CalibrationResponse,
    CalibrationSummary,
    CatalogResponse,
    CollectionResponse,
    CompareResponse,
    CreateEpisodeResponse,
    DeliveryResponse,
    DeliverySummary,
    DriftResponse,
    EpisodeResponse,
    EvaluateResponse,
    ExportFormat,
    FailedTurn,
    ManifestResponse,
    NewWebhookResponse,
    PlayedTurn,
    PreferenceExport,
    PreferenceResponse,
    PreferenceSource,
    PreferenceSummary,
    RankResponse,
    RewardModelResponse,
    RewardModelSummary,
    Role,
    ScenarioResponse,
    StartedEpisode,
    StoredEvaluation,
    TurnResponse,
    UsageResponse,
    WebhookEvent,
    WebhookResponse,
    WebhookSummary,
    Winner,
)


class LabsClient:
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
        self._random = random.Random()  # noqa: S311 - jitter, no secret
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
        """Where this client talks to."""
        return self._connection

    @property
    def retry(self) -> RetryPolicy:
        """The limits of each call."""
        return self._retry

    @property
    def default_headers(self) -> httpx2.Headers:
        """What is sent with every request besides the client's own."""
        return self._headers

    @property
    def max_connections(self) -> int:
        """Of the pool."""
        return self._wire.max_connections

    @property
    def http_client(self) -> httpx2.Client:
        """The pool."""
        return self._wire.http

    @property
    def has_own_transport(self) -> bool:
        """Whether the caller said how requests travel."""
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
        return Operator(self._send)

    @property
    def jobs(self) -> Jobs:
        """Work in the background of the server."""
        return Jobs(self._send, self._wire.sleep)

    @property
    def agents(self) -> Agents:
        """Policies that the server talks to, and how they stand beside each other."""
        return Agents(self._send)

    @property
    def training_runs(self) -> TrainingRuns:
        """Runs of the bundled learner on the server."""
        return TrainingRuns(self._send, self._wire.sleep)

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

    def calibrations(self, *, limit: int | None = None, cursor: str | None = None) -> Page[CalibrationSummary]:
        """The scales on which `reward_config.calibration` can show a reward."""
        return Page[CalibrationSummary].of(self._send, calls.calibrations(limit=limit, cursor=cursor))

    def reward_models(self, *, limit: int | None = None, cursor: str | None = None) -> Page[RewardModelSummary]:
        """The learned reward models of the server, newest first."""
        return Page[RewardModelSummary].of(self._send, calls.reward_models(limit=limit, cursor=cursor))

    def drift(self, *, collection_slug: str | None = None) -> DriftResponse:
        """By scenario, how far the lab's latest rewards have moved from those before them."""
        return self._send(calls.drift(collection_slug=collection_slug))

    def delete_calibration(self, calibration_id: str) -> CalibrationResponse:
        """Delete a calibration of the lab's own."""
        return self._send(calls.delete_calibration(calibration_id))

    def activate_reward_model(self, reward_model_id: str, *, force: bool = False) -> RewardModelResponse:
        """Let a learned model serve from now on, `force` even one that is unfit; it changes the scoring version.

        One that all labs share takes an operator's key.
        """
        return self._send(calls.activate_reward_model(reward_model_id, force=force))

    def deactivate_reward_model(self, reward_model_id: str) -> RewardModelResponse:
        """Let a model of the lab's own serve no longer."""
        return self._send(calls.deactivate_reward_model(reward_model_id))

    def delete_reward_model(self, reward_model_id: str) -> RewardModelResponse:
        """Delete a model of the lab's own that does not serve."""
        return self._send(calls.delete_reward_model(reward_model_id))

    def usage(self, *, days: int | None = None) -> UsageResponse:
        """What the lab used, by day, and its limits."""
        return self._send(operator_calls.usage(days=days))

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
        scenario_slug: str | None = None,
        status: str | None = None,
    ) -> Page[EpisodeResponse]:
        """This lab's episodes, newest first: all of them to go over, or page by page of at most `limit`."""
        call = calls.list_episodes(
            limit=limit, cursor=cursor, collection_slug=collection_slug, scenario_slug=scenario_slug, status=status
        )
        return Page[EpisodeResponse].of(self._send, call)

    def delete_episode(self, episode_id: str) -> EpisodeResponse:
        """End an episode."""
        return self._send(calls.delete_episode(episode_id))

    # --- many episodes in one request ----------------------------------------------------------

    def batch_episodes(
        self,
        collection_slug: str,
        scenario_slug: str,
        count: int,
        *,
        seed: int | None = None,
        max_turns: int | None = None,
        observation_role: Role | None = None,
        persona: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        score_turns: bool = True,
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> list[StartedEpisode]:
        """Start a group of up to 100 episodes that share persona and seed: all of them, or an error."""
        answer = self._send(
            calls.batch_episodes(
                collection_slug,
                scenario_slug,
                count,
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
        return answer.episodes

    def start_episodes(
        self, items: Sequence[EpisodeLike], *, idempotency_key: str | None = None
    ) -> list[StartedEpisode]:
        """Start up to 100 episodes `{"collection_slug", "scenario_slug", "config", ...}` that differ, in their order.

        All of them are started, or an error is raised.
        """
        return (self._send(calls.start_episodes(items, idempotency_key))).episodes

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

    def get_evaluation(self, evaluation_id: str) -> StoredEvaluation:
        """An evaluation as it was answered, whichever door it came through."""
        return self._send(calls.get_evaluation(evaluation_id))

    def batch_evaluate(self, items: Sequence[ItemLike]) -> batch.BatchOutcome:
        """Score any number of conversations; sent in requests of at most 100."""
        jobs = [partial(self._parts, chunk) for chunk in batch.split(items)]
        return batch.join([part for parts in self._wire.each(jobs) for part in parts])

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

    # --- preferences ---------------------------------------------------------------------------

    def prefer(
        self,
        winner: Winner,
        *,
        comparison_id: str | None = None,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        messages_a: Sequence[MessageLike] | None = None,
        messages_b: Sequence[MessageLike] | None = None,
        agent_role: Role = "assistant",
        margin: float | None = None,
        labeller: str | None = None,
        idempotency_key: str | None = None,
    ) -> PreferenceResponse:
        """Keep what a person says: of a stored comparison, or of two conversations that come along."""
        return self._send(
            preferences.prefer(
                winner,
                comparison_id=comparison_id,
                collection_slug=collection_slug,
                scenario_slug=scenario_slug,
                messages_a=messages_a,
                messages_b=messages_b,
                agent_role=agent_role,
                margin=margin,
                labeller=labeller,
                idempotency_key=idempotency_key,
            )
        )

    def preferences(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
    ) -> Page[PreferenceSummary]:
        """Stored comparisons and human labels, newest first."""
        call = preferences.preferences(limit=limit, cursor=cursor, collection_slug=collection_slug, source=source)
        return Page[PreferenceSummary].of(self._send, call)

    def preference_agreement(self, *, collection_slug: str | None = None) -> AgreementResponse:
        """How often rewards agree with the lab's human labels of the same comparisons."""
        return self._send(preferences.preference_agreement(collection_slug=collection_slug))

    def export_preferences(
        self,
        format: ExportFormat = "trl",
        *,
        min_margin: float | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
        until: datetime | str | None = None,
        provenance: bool = True,
    ) -> PreferenceExport:
        """Preference pairs for training: `rows`, and `text` for a file."""
        return self._send(
            preferences.export_preferences(
                format,
                min_margin=min_margin,
                collection_slug=collection_slug,
                source=source,
                until=until,
                provenance=provenance,
            )
        )

    def preference_manifest(
        self,
        format: ExportFormat = "trl",
        *,
        min_margin: float | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
        until: datetime | str | None = None,
        provenance: bool = True,
    ) -> ManifestResponse:
        """What such an export holds: counts, what was left out, and its digest."""
        return self._send(
            preferences.preference_manifest(
                format,
                min_margin=min_margin,
                collection_slug=collection_slug,
                source=source,
                until=until,
                provenance=provenance,
            )
        )

    # --- webhooks ------------------------------------------------------------------------------

    def add_webhook(
        self,
        url: str,
        *,
        events: Sequence[WebhookEvent] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> NewWebhookResponse:
        """Be told of events at a URL; the answer alone has the secret that messages are signed with."""
        call = webhooks.add_webhook(url, events=events, description=description, idempotency_key=idempotency_key)
        return self._send(call)

    def webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> Page[WebhookSummary]:
        """The lab's webhooks, newest first."""
        return Page[WebhookSummary].of(self._send, webhooks.webhooks(limit=limit, cursor=cursor))

    def get_webhook(self, webhook_id: str) -> WebhookResponse:
        """One webhook."""
        return self._send(webhooks.get_webhook(webhook_id))

    def delete_webhook(self, webhook_id: str) -> WebhookResponse:
        """Delete a webhook, with its messages."""
        return self._send(webhooks.delete_webhook(webhook_id))

    def test_webhook(self, webhook_id: str) -> DeliveryResponse:
        """Send a `webhook.test` message."""
        return self._send(webhooks.test_webhook(webhook_id))

    def webhook_deliveries(
        self, webhook_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[DeliverySummary]:
        """Messages to a webhook, newest first."""
        call = webhooks.webhook_deliveries(webhook_id, limit=limit, cursor=cursor)
        return Page[DeliverySummary].of(self._send, call)

    def resend_delivery(self, webhook_id: str, message_id: str) -> DeliveryResponse:
        """Send a message again, dead or not, with all its attempts."""
        return self._send(webhooks.resend_delivery(webhook_id, message_id))

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

    def _turns(self, items: Sequence[TurnLike], key: str | None) -> batch.TurnsPart:
        try:
            return batch.TurnsPart(items, self._send(calls.batch_turns(items, key)))
        except LabsError as error:
            if not error.retryable:
                raise
            return batch.TurnsPart(items, error)

    def _send(self, call: Call[AnswerT]) -> AnswerT:
        return (self._exchange(call)).parse()

    def _exchange(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        sent = request_of(call, self._connection, self._headers)
        attempts = Attempts(self._retry, time.monotonic, self._random)
        while True:
            try:
                received = self._wire.attempt(sent, attempts.timeout_s())
                return answer_of(call, received, attempts.failures)
            except LabsError as failure:
                failure.host = self._connection.host
                pause_s = attempts.pause_s(failure)
            self._wire.sleep(pause_s)
