"""The metrics page: what is counted, under which labels."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from reward_server.llm.base import TokenUsage
from reward_server.telemetry.metrics import CONTENT_TYPE, Metrics

PUBLIC_LABELS = {
    "route",
    "method",
    "status",
    "terminal_reason",
    "source",
    "code",
    "kind",
    "cache",
    "provider",
    "outcome",
    "direction",
    "collection",
    "scenario",
    "level",
    "type",
    "state",
    "op",
}


def values(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_what_was_counted_is_on_the_page() -> None:
    metrics = Metrics()
    metrics.requests.labels("/api/v1/episodes", "POST", "200").inc()
    metrics.turns.inc(3)
    metrics.judge_abstentions.labels("judge").inc()
    found = values(metrics)
    labels = (("method", "POST"), ("route", "/api/v1/episodes"), ("status", "200"))
    assert found["labs_requests_total", labels] == 1
    assert found["labs_turns_total", ()] == 3
    assert found["labs_judge_abstentions_total", (("kind", "judge"),)] == 1
    assert found["labs_rate_limited_total", ()] == 0


def test_latencies_fall_into_buckets() -> None:
    metrics = Metrics()
    metrics.request_seconds.labels("/healthz", "GET").observe(0.03)
    found = values(metrics)
    route = (("method", "GET"), ("route", "/healthz"))
    assert found["labs_request_seconds_bucket", (("le", "0.02"), *route)] == 0
    assert found["labs_request_seconds_bucket", (("le", "0.05"), *route)] == 1


def test_what_language_models_do_is_counted() -> None:
    metrics = Metrics()
    metrics.llm.attempted("openai", "answered", 0.3, TokenUsage(100, 20, 80))
    metrics.llm.attempted("openai", "timeout", 15.0, TokenUsage())
    metrics.llm.failed("openai", "timeout")
    metrics.llm.shared("openai")
    metrics.llm.refused("openai")
    with capture_logs() as logs:
        metrics.llm.breaker_moved("openai", "rate_limited")
        metrics.llm.breaker_moved("openai", "timeout")
    assert [(line["event"], line["cause"]) for line in logs] == [("llm_breaker_opened", "rate_limited")]
    found = values(metrics)
    who = ("provider", "openai")
    assert found["labs_llm_attempts_total", (("outcome", "answered"), who)] == 1
    assert found["labs_llm_attempt_seconds_count", (who,)] == 2
    assert found["labs_llm_failures_total", (("kind", "timeout"), who)] == 1
    directions = {kind: found["labs_llm_tokens_total", (("direction", kind), who)] for kind in ("input", "cached")}
    assert directions == {"input": 100, "cached": 80}
    assert found["labs_llm_shared_total", (who,)] == found["labs_llm_over_budget_total", (who,)] == 1
    assert found["labs_llm_breaker_open", (who,)] == 1
    with capture_logs() as logs:
        metrics.llm.breaker_moved("openai", None)
        metrics.llm.breaker_moved("openai", None)
    assert [line["event"] for line in logs] == ["llm_breaker_closed"]
    assert values(metrics)["labs_llm_breaker_open", (who,)] == 0


def test_two_apps_in_a_process_do_not_mix() -> None:
    one, two = Metrics(), Metrics()
    one.turns.inc()
    assert values(two)["labs_turns_total", ()] == 0


def test_the_process_is_on_the_page() -> None:
    page = Metrics().render().decode()
    assert "process_resident_memory_bytes" in page
    assert CONTENT_TYPE.startswith("text/plain")


def test_no_label_can_hold_anything_private() -> None:
    metrics = Metrics()
    ours = [metric for metric in (vars(metrics) | vars(metrics.llm)).values() if hasattr(metric, "_labelnames")]
    assert len(ours) >= 10
    assert {name for metric in ours for name in metric._labelnames} <= PUBLIC_LABELS
