"""Counters of calls of language models; labs are no labels, as bills are the ledger's."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reward_server.llm.base import TokenUsage
from reward_server.llm.budget import Prices
from reward_server.logs.logger import get_logger

log = get_logger(__name__)

NANO = 1_000_000_000
LATENCY_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class LlmMetrics:
    """The counters of language models; a `Meter`. Labs are no labels: there may be many, and bills are the ledger's."""

    def __init__(self, registry: CollectorRegistry, prices: Prices | None = None) -> None:
        self._prices = prices or Prices()
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
        self.cost = Counter(
            "labs_llm_cost_usd",
            "US dollars that answers cost, at the prices of the settings.",
            ("provider",),
            registry=registry,
        )
        self.fallbacks = Counter(
            "labs_reader_fallbacks",
            "Turns that the decision model did not read and the local reader did, by the kind of failure.",
            ("kind",),
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

    def attempted(self, provider: str, outcome: str, seconds: float, usage: TokenUsage) -> None:
        """One call ended."""
        self.attempts.labels(provider, outcome).inc()
        self.attempt_seconds.labels(provider).observe(seconds)
        self.tokens.labels(provider, "input").inc(usage.input_tokens)
        self.tokens.labels(provider, "output").inc(usage.output_tokens)
        self.tokens.labels(provider, "cached").inc(usage.cached_tokens)
        self.cost.labels(provider).inc(self._prices.of(usage).nano_usd / NANO)

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
        """Note the state of the breaker: open after this failure, or closed."""
        self.breaker_open.labels(provider).set(cause is not None)
        if cause is not None and provider not in self._left_alone:
            # From now on questions fail as `breaker_open`, which does not say why.
            log.warning("llm_breaker_opened", provider=provider, cause=str(cause))
            self._left_alone.add(provider)
        elif cause is None and provider in self._left_alone:
            log.info("llm_breaker_closed", provider=provider)
            self._left_alone.remove(provider)

    def reader_fell_back(self, kind: str) -> None:
        """A turn was read locally, because the decision model failed in this way."""
        self.fallbacks.labels(kind).inc()
