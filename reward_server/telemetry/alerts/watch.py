"""Looks at the metrics now and then, and tells what is wrong."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from reward_server.errors import ConfigurationError
from reward_server.logs.logger import get_logger
from reward_server.settings import Settings
from reward_server.telemetry.alerts.board import Board
from reward_server.telemetry.alerts.file import rules_of
from reward_server.telemetry.alerts.readings import Page, Readings, page_of
from reward_server.telemetry.alerts.rules import RULES, Level, Rule
from reward_server.telemetry.alerts.tell import AlertSink, LogAlertSink, WebhookTeller, tell_all
from reward_server.telemetry.metrics import Metrics

EVERY_S = 15.0

log = get_logger(__name__)


class AlertWatch:
    """The alerts of one server."""

    def __init__(
        self,
        metrics: Metrics,
        tellers: Sequence[AlertSink],
        rules: Sequence[Rule] = RULES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._tellers = tellers
        self._board = Board(rules)
        self._monotonic = monotonic
        self._before: Page | None = None
        self._file: Path | None = None

    @classmethod
    def of_file(cls, path: Path, metrics: Metrics, tellers: Sequence[AlertSink]) -> Self:
        """One with the rules of a file, which can be read again; `ConfigurationError` where it is wrong."""
        made = cls(metrics, tellers, rules_of(path, metrics.registry))
        made._file = path
        return made

    @property
    def can_reload(self) -> bool:
        """True if the rules come from a file."""
        return self._file is not None

    def reload(self) -> None:
        """Read the file again; where it is wrong, the log says so and the rules stay as they are."""
        if self._file is None:
            return
        try:
            rules = rules_of(self._file, self._metrics.registry)
        except ConfigurationError as error:
            log.warning("alerts_not_reloaded", error=error.message)
            return
        self._board.replace(rules)
        log.info("alerts_reloaded", rules=len(rules))

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Look once, and tell."""
        now = page_of(self._metrics.registry)
        seen = Readings(now, now if self._before is None else self._before)
        self._before = now
        notices = self._board.look(seen, self._monotonic())
        for level in Level:
            self._metrics.alerts_firing.labels(level).set(self._board.firing(level))
        await tell_all(self._tellers, notices)


def alert_watch(settings: Settings, metrics: Metrics) -> AlertWatch:
    """The alerts that the settings ask for; the name of this machine tells servers apart.

    Raises:
        ConfigurationError: the file of rules is wrong.
    """
    urls = (settings.alert_slack_url, settings.alert_webhook_url)
    slack, webhook = (None if url is None else url.get_secret_value() for url in urls)
    tellers = tellers_for(socket.gethostname(), slack, webhook)
    return (
        AlertWatch(metrics, tellers)
        if settings.alerts is None
        else AlertWatch.of_file(settings.alerts, metrics, tellers)
    )


def tellers_for(server: str, slack: str | None, webhook: str | None) -> list[AlertSink]:
    """The log, and what the settings name."""
    tellers: list[AlertSink] = [LogAlertSink()]
    if slack is not None:
        tellers.append(WebhookTeller(slack, server, for_slack=True))
    if webhook is not None:
        tellers.append(WebhookTeller(webhook, server))
    return tellers
