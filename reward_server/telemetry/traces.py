"""OpenTelemetry traces: one span for each request, named by its route. Off unless `LABS_OTLP_ENDPOINT` is set.

A span holds what the log line of the request holds and nothing anybody wrote. The SDK is the optional extra `traces`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reward_server import __version__
from reward_server.errors import ConfigurationError

_NAMES = {"lab": "labs.lab", "episode": "labs.episode_id", "code": "labs.error_code"}
"""Of the trace of a request, what goes into its span, and what it is called there."""
_SERVER_ERROR = 500


class RequestSpan:
    """The span of one request; says nothing where there are no traces."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def tell(self, method: str, route: str, status: int, request_id: str, trace: Mapping[str, Any]) -> None:
        """Add what is known when it ends."""
        if self._span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        self._span.update_name(f"{method} {route}")
        known = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
        told = {name: trace[key] for key, name in _NAMES.items() if key in trace}
        self._span.set_attributes({**known, "labs.request_id": request_id, **told})
        if status >= _SERVER_ERROR:
            self._span.set_status(Status(StatusCode.ERROR))


class Traces:
    """The destination of spans: none, or a provider of OpenTelemetry."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("labs", __version__)

    @contextmanager
    def span(self) -> Iterator[RequestSpan]:
        """Around a request."""
        if self._tracer is None:
            yield RequestSpan()
            return
        from opentelemetry.trace import SpanKind

        # An error's message may quote anything: the status is told, the exception is not.
        with self._tracer.start_as_current_span(
            "request", kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            yield RequestSpan(span)

    def close(self) -> None:
        """Send what was not sent yet; blocking."""
        if self._provider is not None:
            self._provider.shutdown()


def traces_to(endpoint: str | None) -> Traces:
    """Traces that go to this OTLP endpoint over HTTP; none where there is none."""
    if endpoint is None:
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigurationError(
            "LABS_OTLP_ENDPOINT needs OpenTelemetry's SDK: pip install 'labs-reward-server[traces]'"
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": "labs", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return Traces(provider)
