"""Alert rules of the operator's own: read at start, read again on SIGHUP, told at their level."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reward_server.errors import ConfigurationError
from reward_server.server.signals import Signals, hear_hangup
from reward_server.telemetry.alerts.board import Board
from reward_server.telemetry.alerts.file import rules_of
from reward_server.telemetry.alerts.readings import Readings, page_of
from reward_server.telemetry.alerts.rules import RULES, Level, Rule
from reward_server.telemetry.alerts.tell import LogAlertSink
from reward_server.telemetry.alerts.watch import AlertWatch
from reward_server.telemetry.metrics import Metrics

FILE = """
thresholds:
  slow_requests: {above: 5, lasting_s: 0, level: error}
  reward_drift: off
rules:
  - name: disk_low
    level: critical
    summary: The disk is nearly full.
    metric: labs_disk_free_bytes
    below: 2000
  - {name: many_turns, level: info, summary: Many turns., metric: labs_turns_total, read: grown, above: 10}
  - name: slow_turns
    summary: Turns are slow.
    metric: labs_request_seconds
    labels: {route: /turns}
    read: p95
    above: 1
"""


def read(tmp_path: Path, text: str, metrics: Metrics | None = None) -> dict[str, Rule]:
    path = tmp_path / "alerts.yaml"
    path.write_text(text)
    return {rule.name: rule for rule in rules_of(path, (metrics or Metrics()).registry)}


def test_thresholds_change_and_rules_are_added(tmp_path: Path) -> None:
    rules = read(tmp_path, FILE)
    assert set(rules) == ({rule.name for rule in RULES} | {"disk_low", "many_turns", "slow_turns"}) - {"reward_drift"}
    assert (rules["slow_requests"].above, rules["slow_requests"].lasting_s) == (5, 0)
    assert (rules["slow_requests"].level, rules["many_turns"].level) == (Level.ERROR, Level.INFO)
    assert rules["server_errors"] in RULES
    assert len(read(tmp_path, "")) == len(RULES)


def test_own_rules_see_what_they_are_for(tmp_path: Path) -> None:
    metrics = Metrics()
    board = Board(list(read(tmp_path, FILE, metrics).values()))
    before = page_of(metrics.registry)
    metrics.disk_free.set(5000)
    for _ in range(30):
        metrics.request_seconds.labels("/turns", "POST").observe(0.01)
        metrics.request_seconds.labels("/other", "POST").observe(3.0)
    now = page_of(metrics.registry)
    assert board.look(Readings(now, before), 0.0) == []
    metrics.disk_free.set(1500)
    metrics.turns.inc(11)
    for _ in range(60):
        metrics.request_seconds.labels("/turns", "POST").observe(3.0)
    notices = {each.name: each for each in board.look(Readings(page_of(metrics.registry), now), 1.0)}
    assert set(notices) == {"disk_low", "many_turns", "slow_turns"}
    assert notices["disk_low"].value == 1500
    assert board.firing(Level.INFO) == board.firing(Level.CRITICAL) == 1


def test_a_gauge_that_is_not_there_is_not_low(tmp_path: Path) -> None:
    rules = read(tmp_path, "rules: [{name: a, summary: b, metric: labs_own_share, below: 0.5}]")
    assert not rules["a"].is_wrong(rules["a"].read(Readings({}, {})))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("thresholds: {nothing: {above: 1}}", "thresholds.nothing: there is no such alert"),
        ("rules: [{name: a, summary: b, metric: labs_nothing, above: 1}]", "/metrics has no labs_nothing"),
        ("rules: [{name: a, summary: b, metric: labs_redis_lost}]", "give above or below"),
        ("rules: [{name: a, summary: b, metric: labs_redis_lost, read: p95, below: 1}]", "below goes with read: level"),
        ("rules: [{name: redis_lost, summary: b, metric: labs_redis_lost, above: 1}]", "the name of another alert"),
        ("rules: [{name: a, summary: b, metric: labs_redis_lost, above: 1, level: loud}]", "rules.0.level"),
        ("rule: []", "rule: Extra inputs"),
        ("rules: [", "while parsing"),
    ],
)
def test_a_file_that_is_wrong_says_where_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text)
    assert caught.value.message.startswith("LABS_ALERTS: alerts.yaml: ")
    assert says in caught.value.message
    assert "\n" not in caught.value.message


async def test_sighup_reads_it_again_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    metrics, path = Metrics(), tmp_path / "alerts.yaml"
    path.write_text("rules: [{name: lost, level: error, summary: b, metric: labs_redis_lost, above: 0}]")
    watch = AlertWatch.of_file(path, metrics, [LogAlertSink()])
    metrics.redis_lost.set(1)
    ended: list[int] = []
    async with AsyncExitStack() as stack:
        hear_hangup(stack, watch.reload)
        stack.enter_context(signals := Signals()).hear(lambda number, _: ended.append(number))
        with capture_logs() as logs:
            await watch.look()
            path.write_text("rules: [")
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            await watch.look()
            path.write_text("rules: [{name: gone, level: info, summary: b, metric: labs_redis_lost, above: 0}]")
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            await watch.look()
    assert (ended, signals.first) == ([], None)
    told = [(line["event"], line.get("alert"), line["log_level"]) for line in logs]
    assert told == [
        ("alert", "lost", "error"),
        ("alerts_not_reloaded", None, "warning"),
        ("alerts_reloaded", None, "info"),
        ("alert", "gone", "info"),
    ]
