"""Of what the server stands on: encoder, database, Redis, queues, caches; and its jobs, webhooks and alerts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class ResourceMetrics:
    """The counters of resources and background work."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.encoder_texts = Counter(
            "labs_encoder_texts", "Texts encoded (`miss`) or found in the cache (`hit`).", ("cache",), registry=registry
        )
        self.store_errors = Counter(
            "labs_store_errors", "Requests that failed because the database was not available.", registry=registry
        )
        self.job_items = Counter(
            "labs_job_items", "Items of jobs by what became of an attempt.", ("type", "state"), registry=registry
        )
        self.jobs_finished = Counter(
            "labs_jobs_finished", "Jobs that have ended, by type and status.", ("type", "status"), registry=registry
        )
        self.webhook_attempts = Counter(
            "labs_webhook_attempts",
            "Messages sent to webhooks, by what became of the attempt: delivered, pending (again later), dead.",
            ("state",),
            registry=registry,
        )
        self.redis_lost = Gauge("labs_redis_lost", "Whether Redis does not answer (1) or does (0).", registry=registry)
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
        self.disk_free = Gauge(
            "labs_disk_free_bytes", "What is free on the disk of the data folder.", registry=registry
        )
        self.disk_size = Gauge("labs_disk_bytes", "The size of the disk of the data folder.", registry=registry)
        self.alerts_firing = Gauge(
            "labs_alerts_firing", "Alerts that fire at this moment.", ("level",), registry=registry
        )
