"""Prometheus metrics, one registry per app so that two apps in a process do not mix.

Labels are few: route templates, status codes, doors, kinds of checks, and scenarios by their public names where the
page is for operators alone. A label never names a criterion, a fact or anything a client wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from reward_server.llm.budget import Prices
from reward_server.telemetry.drift import Drift
from reward_server.telemetry.llm_metrics import LATENCY_BUCKETS_S, LlmMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REWARD_BUCKETS = tuple(number / 10 for number in range(11))
ALL = "all"
"""In place of a scenario's name where the page is open: what a scenario pays is for operators."""


class Metrics:
    """The counters of one app."""

    def __init__(self, *, by_scenario: bool = False, prices: Prices | None = None) -> None:
        self._by_scenario = by_scenario
        self._drift = Drift()
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self.requests = Counter(
            "labs_requests",
            "Requests answered. `route` is the template, never the path.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            "labs_request_seconds",
            "Time to answer a request.",
            ("route", "method"),
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.requests_in_work = Gauge("labs_requests_in_work", "Requests being answered.", registry=registry)
        self.sockets_open = Gauge("labs_sockets_open", "WebSockets that play episodes.", registry=registry)
        self.socket_operations = Counter(
            "labs_socket_operations",
            "Operations on WebSockets answered; `status` is that of the HTTP call, 499 where the client left.",
            ("op", "status"),
            registry=registry,
        )
        self.socket_operation_seconds = Histogram(
            "labs_socket_operation_seconds",
            "Time to answer an operation on a WebSocket.",
            ("op",),
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.turned_away = Counter(
            "labs_turned_away", "Requests refused because all places were taken.", registry=registry
        )
        self.loop_lag = Gauge(
            "labs_loop_lag_seconds", "The longest that the event loop was late of late.", registry=registry
        )
        self.loop_tasks = Gauge("labs_loop_tasks", "Tasks of the event loop that are not done.", registry=registry)
        self.rate_limited = Counter("labs_rate_limited", "Requests refused by a key's limit.", registry=registry)
        self.episodes_started = Counter("labs_episodes_started", "Episodes created.", registry=registry)
        self.episodes_ended = Counter(
            "labs_episodes_ended", "Episodes that ended.", ("terminal_reason",), registry=registry
        )
        self.turns = Counter("labs_turns", "Turns answered and stored.", registry=registry)
        self.evaluations = Counter(
            "labs_evaluations", "Conversations scored outside episodes.", ("source",), registry=registry
        )
        self.unscored = Counter(
            "labs_unscored", "Conversations that got an error instead of a reward.", ("code",), registry=registry
        )
        self.judge_abstentions = Counter(
            "labs_judge_abstentions",
            "Criteria that no judge decided, by the kind of their check.",
            ("kind",),
            registry=registry,
        )
        self.judge_failures = Counter(
            "labs_judge_failures",
            "Conversations that a judge failed on, by how it failed.",
            ("kind",),
            registry=registry,
        )
        self.persona_wording = Counter(
            "labs_persona_wording",
            "Lines of personas by whose words were said: the model's (`llm`), or the template's and why.",
            ("outcome",),
            registry=registry,
        )
        self.encoder_texts = Counter(
            "labs_encoder_texts", "Texts encoded (`miss`) or found in the cache (`hit`).", ("cache",), registry=registry
        )
        self.store_errors = Counter(
            "labs_store_errors", "Requests that failed because the database was not available.", registry=registry
        )
        self.job_items = Counter(
            "labs_job_items", "Items of jobs by what became of an attempt.", ("type", "state"), registry=registry
        )
        self.webhook_attempts = Counter(
            "labs_webhook_attempts",
            "Messages sent to webhooks, by what became of the attempt: delivered, pending (again later), dead.",
            ("state",),
            registry=registry,
        )
        self.redis_lost = Gauge("labs_redis_lost", "Whether Redis does not answer (1) or does (0).", registry=registry)

        self.rewards = Histogram(
            "labs_rewards",
            "Rewards given.",
            ("collection", "scenario"),
            buckets=REWARD_BUCKETS,
            registry=registry,
        )
        self.reward_drift = Gauge(
            "labs_reward_drift",
            "How far the mean of the latest rewards is from that of those before, in standard deviations.",
            ("collection", "scenario"),
            registry=registry,
        )
        self.scoring_seconds = Histogram(
            "labs_scoring_seconds",
            "Time of all judges for one request, a batch being one.",
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.queue_age = Gauge(
            "labs_scoring_queue_seconds", "The longest that a lab's work waits for its turn.", registry=registry
        )
        self.store_waiting = Gauge(
            "labs_store_waiting", "Units of work that hold or wait for a writing connection.", registry=registry
        )
        self.readers_busy = Gauge(
            "labs_store_readers_busy", "Reads that hold or wait for a reading connection.", registry=registry
        )
        self.cache_bytes = Gauge(
            "labs_cache_bytes", "About what a cache in memory takes; it is bounded.", ("cache",), registry=registry
        )
        self.alerts_firing = Gauge(
            "labs_alerts_firing", "Alerts that fire at this moment.", ("level",), registry=registry
        )
        self.llm = LlmMetrics(registry, prices)

    def rewarded(self, collection: str, scenario: str, reward: float, scoring_version: str) -> None:
        """A conversation of this scenario was paid; the names are the catalog's."""
        names = (collection, scenario) if self._by_scenario else (ALL, ALL)
        self.rewards.labels(*names).observe(reward)
        moved = self._drift.moved(collection, scenario, reward, scoring_version)
        if moved is not None and self._by_scenario:
            self.reward_drift.labels(*names).set(moved)

    def watch(
        self,
        queue_age: Callable[[], float],
        store_waiting: Callable[[], float],
        readers_busy: Callable[[], float],
        loop_tasks: Callable[[], float],
        caches: Mapping[str, Callable[[], float]],
    ) -> None:
        """Whom to ask when the page is read."""
        self.queue_age.set_function(queue_age)
        self.store_waiting.set_function(store_waiting)
        self.readers_busy.set_function(readers_busy)
        self.loop_tasks.set_function(loop_tasks)
        for name, held_bytes in caches.items():
            self.cache_bytes.labels(name).set_function(held_bytes)

    def encoder_looked_up(self, hits: int, misses: int) -> None:
        """Texts that the encoder's cache had, and those it had not."""
        self.encoder_texts.labels("hit").inc(hits)
        self.encoder_texts.labels("miss").inc(misses)

    def render(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)
