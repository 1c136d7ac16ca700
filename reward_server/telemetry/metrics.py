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

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


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
        self.encoder_texts = Counter(
            "labs_encoder_texts", "Texts encoded (`miss`) or found in the cache (`hit`).", ("cache",), registry=registry
        )
        self.store_errors = Counter(
            "labs_store_errors", "Requests that failed because the database was not available.", registry=registry
        )

    def encoder_looked_up(self, hits: int, misses: int) -> None:
        """Texts that the encoder's cache had, and those it had not."""
        self.encoder_texts.labels("hit").inc(hits)
        self.encoder_texts.labels("miss").inc(misses)

    def render(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)
