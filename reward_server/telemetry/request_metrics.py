"""Of requests and sockets: how many, how long, how many were refused, and whether the event loop keeps up."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reward_server.telemetry.llm_metrics import LATENCY_BUCKETS_S


class RequestMetrics:
    """The counters of the edge of the server."""

    def __init__(self, registry: CollectorRegistry) -> None:
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
