"""Alerts: when they begin, that each is told once, when they are over, and who hears of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from reward_server.telemetry.alerts.board import CALM_S, Board, Notice
from reward_server.telemetry.alerts.readings import Readings, page_of, quantile
from reward_server.telemetry.alerts.rules import RULES, Level, Rule
from reward_server.telemetry.alerts.tell import ATTEMPTS, WebhookTeller, tell_all
from reward_server.telemetry.alerts.watch import AlertWatch, tellers_for
from reward_server.telemetry.metrics import Metrics

NOTICE = Notice("redis_lost", Level.WARNING, "Redis does not answer.", 1.0, resolved=False)


def a_rule(lasting_s: float = 0.0) -> Rule:
    return Rule("late", Level.CRITICAL, "Late.", 1.0, lasting_s, lambda seen: seen.level("labs_loop_lag_seconds"))


def looked(board: Board, value: float, now_s: float) -> list[tuple[str, bool]]:
    page = {"labs_loop_lag_seconds": {frozenset[tuple[str, str]](): value}}
    return [(notice.name, notice.resolved) for notice in board.look(Readings(page, page), now_s)]


def test_an_alert_is_told_once_and_its_end_once() -> None:
    board = Board([a_rule()])
    assert looked(board, 0.5, 0.0) == []
    assert looked(board, 2.0, 1.0) == [("late", False)]
    assert [looked(board, 2.0, float(moment)) for moment in range(2, 60)] == [[]] * 58
    assert board.firing(Level.CRITICAL) == 1
    assert looked(board, 0.5, 60.0) == []
    assert looked(board, 0.5, 60.0 + CALM_S) == [("late", True)]
    assert looked(board, 0.5, 500.0) == []
    assert board.firing(Level.CRITICAL) == 0


def test_what_passes_is_not_told_and_what_comes_and_goes_is_one_alert() -> None:
    board = Board([a_rule(lasting_s=30.0)])
    assert looked(board, 2.0, 0.0) == looked(board, 0.0, 20.0) == looked(board, 2.0, 29.0) == []
    assert looked(board, 2.0, 60.0) == [("late", False)]
    for moment in range(70, 400, 20):
        assert looked(board, 2.0 if moment % 40 else 0.0, float(moment)) == []


def fired(metrics: Metrics, before: Metrics | None = None) -> set[str]:
    """Which rules see something wrong, however long it lasts."""
    now = page_of(metrics.registry)
    seen = Readings(now, page_of((before or Metrics()).registry))
    return {rule.name for rule in RULES if rule.read(seen) > rule.above}


def test_a_quiet_server_has_no_alert() -> None:
    assert fired(Metrics()) == set()


def test_each_rule_sees_what_it_is_for() -> None:
    metrics = Metrics(by_scenario=True)
    metrics.requests.labels("/api/v1/evaluate", "POST", "500").inc(10)
    metrics.requests.labels("/api/v1/evaluate", "POST", "200").inc(90)
    for _ in range(30):
        metrics.request_seconds.labels("/api/v1/evaluate", "POST").observe(25.0)
    metrics.store_errors.inc()
    metrics.loop_lag.set(3.0)
    metrics.queue_age.set(20.0)
    metrics.turned_away.inc()
    metrics.readers_busy.set(40)
    metrics.webhook_attempts.labels("dead").inc()
    metrics.redis_lost.set(1)
    metrics.llm.breaker_open.labels("openai").set(1)
    metrics.judge_failures.labels("timeout").inc(30)
    metrics.reward_drift.labels("tutoring", "fractions").set(-3.0)
    assert fired(metrics) == {rule.name for rule in RULES}
    # Counters that grow no more are no news.
    levels = {"event_loop_late", "scoring_behind", "reads_wait", "redis_lost", "provider_left_alone", "reward_drift"}
    assert fired(metrics, metrics) == levels


def test_refusals_for_lack_of_places_are_no_server_errors() -> None:
    metrics = Metrics()
    metrics.requests.labels("/api/v1/evaluate", "POST", "503").inc(90)
    metrics.requests.labels("/api/v1/evaluate", "POST", "200").inc(10)
    assert "server_errors" not in fired(metrics)


def test_quantiles_are_those_of_prometheus() -> None:
    bounds = {0.1: 50.0, 0.5: 90.0, 1.0: 100.0, float("inf"): 100.0}
    assert quantile(bounds, 0.5) == pytest.approx(0.1)
    assert quantile(bounds, 0.7) == pytest.approx(0.3)
    assert quantile(bounds, 0.95) == pytest.approx(0.75)
    assert quantile({0.1: 0.0, float("inf"): 5.0}, 0.99) == 0.1


class Receiver:
    """An HTTP server that hears webhooks, and fails the first few."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.heard: list[dict[str, object]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        self.heard.append(json.loads(await reader.readexactly(length)))
        self.failures -= 1
        status = b"503 Busy" if self.failures >= 0 else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving(failures: int = 0) -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver(failures)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    async with server:
        yield receiver, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/services/T0/secret"


async def test_slack_a_webhook_and_the_log_hear_both_messages() -> None:
    async with receiving() as (slack, slack_url), receiving() as (other, other_url):
        metrics, clock = Metrics(), [0.0]
        tellers = tellers_for("labs-1", slack_url, other_url)
        watch = AlertWatch(metrics, tellers, rules=[a_rule()], monotonic=lambda: clock[0])
        with capture_logs() as logs:
            for late, moment in ((0.0, 0.0), (4.0, 1.0), (4.0, 2.0), (0.0, 3.0), (0.0, 3.0 + CALM_S)):
                metrics.loop_lag.set(late)
                clock[0] = moment
                await watch.look()
    assert [each["text"] for each in slack.heard] == [
        "[CRITICAL] late on labs-1: Late. (now 4)",
        "[RESOLVED] late on labs-1: Late. (now 0)",
    ]
    assert [(each["state"], each["level"], each["dedup_key"]) for each in other.heard] == [
        ("firing", "critical", "labs-1/late"),
        ("resolved", "critical", "labs-1/late"),
    ]
    assert [(line["event"], line["log_level"]) for line in logs] == [("alert", "error"), ("alert_resolved", "info")]


@pytest.mark.parametrize(("failures", "told"), [(ATTEMPTS - 1, True), (ATTEMPTS, False)])
async def test_a_webhook_that_fails_is_tried_again_and_given_up_without_its_address(failures: int, told: bool) -> None:
    async with receiving(failures) as (receiver, url):
        with capture_logs() as logs:
            await tell_all([WebhookTeller(url, "labs-1", pause_s=0.0)], [NOTICE])
    assert len(receiver.heard) == ATTEMPTS
    assert [line["event"] for line in logs] == ([] if told else ["alert_not_told"])
    assert "secret" not in str(logs)


async def test_nobody_at_the_other_end_is_no_error() -> None:
    with capture_logs() as logs:
        await tell_all([WebhookTeller("http://127.0.0.1:9/x", "labs-1", pause_s=0.0)], [NOTICE])
    assert [line["event"] for line in logs] == ["alert_not_told"]
