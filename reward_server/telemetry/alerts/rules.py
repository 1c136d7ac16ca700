"""Rules of alerts. `deploy/prometheus/rules.yml` has the same for those who run Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from reward_server.telemetry.alerts.readings import Readings


class Level(StrEnum):
    """The urgency with which somebody has to look."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Rule:
    """One thing that may be wrong."""

    name: str
    level: Level
    summary: str
    above: float
    """The value from which on it is wrong."""
    lasting_s: float
    """For so long, before it is told."""
    read: Callable[[Readings], float]
    below: float | None = None
    """Or it is wrong from this value downwards."""

    def is_wrong(self, value: float) -> bool:
        """True if this value is one to tell of."""
        return value > self.above if self.below is None else value < self.below


def _failed(labels: dict[str, str] | object) -> bool:
    return isinstance(labels, dict) and labels["status"].startswith("5") and labels["status"] != "503"


def _given_up(labels: dict[str, str] | object) -> bool:
    return isinstance(labels, dict) and labels["state"] == "dead"


def _server_errors(seen: Readings) -> float:
    return seen.share(seen.grown("labs_requests_total", _failed), seen.grown("labs_requests_total"), 20)


def _judge_failures(seen: Readings) -> float:
    failed = seen.grown("labs_judge_failures_total")
    return seen.share(failed, failed + seen.grown("labs_rewards_count"), 20)


RULES = (
    Rule("server_errors", Level.CRITICAL, "More than 2 % of requests fail.", 0.02, 60.0, _server_errors),
    Rule(
        "database_lost",
        Level.CRITICAL,
        "Requests fail because the database is not available.",
        0.0,
        0.0,
        lambda seen: seen.grown("labs_store_errors_total"),
    ),
    Rule(
        "event_loop_late",
        Level.CRITICAL,
        "Something blocks the event loop: every request waits for it.",
        1.0,
        30.0,
        lambda seen: seen.level("labs_loop_lag_seconds"),
    ),
    Rule(
        "scoring_behind",
        Level.WARNING,
        "A lab's work waits more than 10 s for its turn to be scored.",
        10.0,
        30.0,
        lambda seen: seen.level("labs_scoring_queue_seconds"),
    ),
    Rule(
        "slow_requests",
        Level.WARNING,
        "The slowest hundredth of requests takes more than 10 s.",
        10.0,
        120.0,
        lambda seen: seen.quantile("labs_request_seconds", 0.99),
    ),
    Rule(
        "overloaded",
        Level.WARNING,
        "Requests are turned away because all places are taken.",
        0.0,
        60.0,
        lambda seen: seen.grown("labs_turned_away_total"),
    ),
    Rule(
        "reads_wait",
        Level.WARNING,
        "Reads wait for a connection to the database.",
        32.0,
        30.0,
        lambda seen: seen.level("labs_store_readers_busy"),
    ),
    Rule(
        "webhooks_given_up",
        Level.WARNING,
        "Messages to webhooks were given up.",
        0.0,
        0.0,
        lambda seen: seen.grown("labs_webhook_attempts_total", _given_up),
    ),
    Rule(
        "redis_lost",
        Level.WARNING,
        "Redis does not answer: each server counts limits for itself.",
        0.0,
        15.0,
        lambda seen: seen.level("labs_redis_lost"),
    ),
    Rule(
        "provider_left_alone",
        Level.WARNING,
        "A language model's provider fails, and is left alone for a while.",
        0.0,
        0.0,
        lambda seen: seen.level("labs_llm_breaker_open"),
    ),
    Rule("judges_fail", Level.WARNING, "More than 5 % of conversations fail at a judge.", 0.05, 60.0, _judge_failures),
    Rule(
        "reward_drift",
        Level.WARNING,
        "A scenario pays differently from how it used to, by more than two standard deviations.",
        2.0,
        0.0,
        lambda seen: max(
            seen.level("labs_reward_drift"),
            -min(seen.now.get("labs_reward_drift", {}).values(), default=0.0),
        ),
    ),
)
