"""Prometheus metrics, one registry per app so that two apps in a process do not mix.

Labels are few and public: route templates, status codes, doors, kinds of checks. A label never names a
criterion, a fact or anything a client wrote, so the page may be scraped by whoever runs the monitoring.
"""

from __future__ import annotations

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

from reward_server.llm.base import Usage
from reward_server.telemetry.logs import get_logger

log = get_logger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class LlmMetrics:
    """The counters of language models; a `Meter`. Labs are no labels: there may be many, and bills are the ledger's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = Counter(
            "labs_llm_attempts",
            "Calls of a provider, by how they ended: `answered`, `cancelled` or the kind of failure.",
            ("provider", "outcome"),
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "labs_llm_attempt_seconds",
            "Time of one call of a provider.",
            ("provider",),
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.failures = Counter(
            "labs_llm_failures",
            "Questions without an answer after all retries, by the last kind of failure.",
            ("provider", "kind"),
            registry=registry,
        )
        self.tokens = Counter(
            "labs_llm_tokens",
            "Tokens as the provider counts them; `cached` ones are part of `input`.",
            ("provider", "direction"),
            registry=registry,
        )
        self.shared_questions = Counter(
            "labs_llm_shared", "Questions answered by a call that was under way.", ("provider",), registry=registry
        )
        self.over_budget = Counter(
            "labs_llm_over_budget", "Questions not sent: the lab's budget of the day.", ("provider",), registry=registry
        )
        self.breaker_open = Gauge(
            "labs_llm_breaker_open", "1 while a failing provider is left alone.", ("provider",), registry=registry
        )
        self._left_alone: set[str] = set()

    def attempted(self, provider: str, outcome: str, seconds: float, usage: Usage) -> None:
        """One call ended."""
        self.attempts.labels(provider, outcome).inc()
        self.attempt_seconds.labels(provider).observe(seconds)
        self.tokens.labels(provider, "input").inc(usage.input_tokens)
        self.tokens.labels(provider, "output").inc(usage.output_tokens)
        self.tokens.labels(provider, "cached").inc(usage.cached_tokens)

    def failed(self, provider: str, kind: str) -> None:
        """A question got no answer."""
        self.failures.labels(provider, kind).inc()

    def shared(self, provider: str) -> None:
        """A question was under way already."""
        self.shared_questions.labels(provider).inc()

    def refused(self, provider: str) -> None:
        """A question was not sent."""
        self.over_budget.labels(provider).inc()

    def breaker_moved(self, provider: str, cause: str | None) -> None:
        """How the breaker stands: open after this failure, or closed."""
        self.breaker_open.labels(provider).set(cause is not None)
        if cause is not None and provider not in self._left_alone:
            # From now on questions fail as `breaker_open`, which does not say why.
            log.warning("llm_breaker_opened", provider=provider, cause=str(cause))
            self._left_alone.add(provider)
        elif cause is None and provider in self._left_alone:
            log.info("llm_breaker_closed", provider=provider)
            self._left_alone.remove(provider)


class Metrics:
    """The counters of one app."""

    def __init__(self) -> None:
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
        self.turned_away = Counter(
            "labs_turned_away", "Requests refused because all places were taken.", registry=registry
        )
        self.loop_lag = Gauge(
            "labs_loop_lag_seconds", "The longest that the event loop was late of late.", registry=registry
        )
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
        self.redis_lost = Gauge("labs_redis_lost", "Whether Redis does not answer (1) or does (0).", registry=registry)

        self.llm = LlmMetrics(registry)

    def encoder_looked_up(self, hits: int, misses: int) -> None:
        """Texts that the encoder's cache had, and those it had not."""
        self.encoder_texts.labels("hit").inc(hits)
        self.encoder_texts.labels("miss").inc(misses)

    def render(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)
