"""Prometheus metrics, one registry per app so that two apps in a process do not mix.

Labels are few: route templates, status codes, doors, kinds of checks, and scenarios by their public names where the
page is for operators alone. A label never names a criterion, a fact or anything a client wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

from reward_server.llm.budget import Prices
from reward_server.telemetry.drift import Drift
from reward_server.telemetry.llm_metrics import LlmMetrics
from reward_server.telemetry.own_metrics import TrainingMetrics, own_metrics
from reward_server.telemetry.request_metrics import RequestMetrics
from reward_server.telemetry.resource_metrics import ResourceMetrics
from reward_server.telemetry.scoring_metrics import ScoringMetrics


class DiskUsage(Protocol):
    """The answer of `shutil.disk_usage`."""

    @property
    def total(self) -> int:
        """Bytes in all."""

    @property
    def free(self) -> int:
        """Bytes that are free."""


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALL = "all"
"""In place of a scenario's name where the page is open: what a scenario pays is for operators."""


class Metrics(RequestMetrics, ScoringMetrics, ResourceMetrics):
    """The counters of one app."""

    def __init__(self, *, by_scenario: bool = False, prices: Prices | None = None) -> None:
        self._by_scenario = by_scenario
        self._drift = Drift()
        self._drifting: set[tuple[str, str]] = set()
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        RequestMetrics.__init__(self, registry)
        ScoringMetrics.__init__(self, registry)
        ResourceMetrics.__init__(self, registry)
        self.llm = LlmMetrics(registry, prices)
        self.training = TrainingMetrics()
        registry.register(self.training)
        registry.register(own_metrics)

    def rewarded(self, collection: str, scenario: str, reward: float, scoring_version: str) -> None:
        """A conversation of this scenario was paid; the names are the catalog's."""
        names = (collection, scenario) if self._by_scenario else (ALL, ALL)
        self.rewards.labels(*names).observe(reward)
        if not self._by_scenario:
            return
        if self._drift.note(collection, scenario, reward, scoring_version) and names not in self._drifting:
            self._drifting.add(names)
            # Worked out when the page is read: over a thousand rewards it costs more than the rest of a request.
            self.reward_drift.labels(*names).set_function(partial(self._moved, *names))

    def _moved(self, collection: str, scenario: str) -> float:
        """The number on the page; none until it is known again after the scoring version has changed."""
        return self._drift.moved(collection, scenario) or 0.0

    def watch(
        self,
        *,
        queue_age: Callable[[], float],
        store_waiting: Callable[[], float],
        readers_busy: Callable[[], float],
        loop_tasks: Callable[[], float],
        caches: Mapping[str, Callable[[], float]],
        disk: Callable[[], DiskUsage],
    ) -> None:
        """Set the function to ask when the page is read."""
        self.queue_age.set_function(queue_age)
        self.store_waiting.set_function(store_waiting)
        self.readers_busy.set_function(readers_busy)
        self.loop_tasks.set_function(loop_tasks)
        self.disk_free.set_function(lambda: disk().free)
        self.disk_size.set_function(lambda: disk().total)
        for name, held_bytes in caches.items():
            self.cache_bytes.labels(name).set_function(held_bytes)

    def encoder_looked_up(self, hits: int, misses: int) -> None:
        """Texts that the encoder's cache had, and those it had not."""
        self.encoder_texts.labels("hit").inc(hits)
        self.encoder_texts.labels("miss").inc(misses)

    def render(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)
