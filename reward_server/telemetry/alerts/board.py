"""The board of alerts. Each is told once when it begins and once when it is over, however often it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_server.telemetry.alerts.readings import Readings
from reward_server.telemetry.alerts.rules import Level, Rule

CALM_S = 60.0
"""For so long it has to be well again before that is told: what comes and goes is one alert."""


@dataclass(frozen=True)
class Notice:
    """An alert that began, or is over."""

    name: str
    level: Level
    summary: str
    value: float
    resolved: bool


@dataclass
class _Standing:
    wrong_since: float | None = None
    well_since: float | None = None
    fires: bool = False


class Board:
    """The state of every rule."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._standing = {rule.name: _Standing() for rule in rules}

    def replace(self, rules: Sequence[Rule]) -> None:
        """Go by other rules from now on; an alert whose rule stays goes on as it is."""
        self._rules = rules
        self._standing = {rule.name: self._standing.get(rule.name, _Standing()) for rule in rules}

    def look(self, seen: Readings, now_s: float) -> list[Notice]:
        """Return the notices after a look at the metrics."""
        told = (self._judge(rule, rule.read(seen), now_s) for rule in self._rules)
        return [notice for notice in told if notice is not None]

    def firing(self, level: Level) -> int:
        """The number of alerts that fire at this level."""
        return sum(self._standing[rule.name].fires for rule in self._rules if rule.level is level)

    def _judge(self, rule: Rule, value: float, now_s: float) -> Notice | None:
        standing = self._standing[rule.name]
        if rule.is_wrong(value):
            standing.well_since = None
            if standing.wrong_since is None:
                standing.wrong_since = now_s
            if not standing.fires and now_s - standing.wrong_since >= rule.lasting_s:
                standing.fires = True
                return Notice(rule.name, rule.level, rule.summary, value, resolved=False)
            return None
        standing.wrong_since = None
        if not standing.fires:
            return None
        if standing.well_since is None:
            standing.well_since = now_s
        if now_s - standing.well_since < CALM_S:
            return None
        standing.fires, standing.well_since = False, None
        return Notice(rule.name, rule.level, rule.summary, value, resolved=True)
