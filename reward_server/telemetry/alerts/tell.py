"""Sinks of alerts: the log always; a Slack webhook and any other webhook where they are set.

A webhook that fails is tried again and then given up: the log has it. Its URL is a secret and is shown nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from reward_server.logs.logger import get_logger
from reward_server.telemetry.alerts.board import Notice
from reward_server.telemetry.alerts.rules import Level

ATTEMPTS = 3
PAUSE_S = 1.0
TIMEOUT_S = 5.0

log = get_logger(__name__)
_AT = {Level.INFO: "info", Level.WARNING: "warning", Level.ERROR: "error", Level.CRITICAL: "error"}


class AlertSink(Protocol):
    """Somebody to tell."""

    async def tell(self, notice: Notice) -> None:
        """Pass it on; never raises."""


class LogAlertSink:
    """Tells the log, at the level of the alert."""

    async def tell(self, notice: Notice) -> None:
        """As above."""
        event = "alert_resolved" if notice.resolved else "alert"
        say = getattr(log, "info" if notice.resolved else _AT[notice.level])
        say(event, alert=notice.name, severity=str(notice.level), summary=notice.summary, value=round(notice.value, 3))


@dataclass(frozen=True)
class WebhookTeller:
    """Posts JSON: for Slack the text it shows, for others every field."""

    url: str
    server: str
    for_slack: bool = False
    pause_s: float = PAUSE_S

    async def tell(self, notice: Notice) -> None:
        """As above."""
        import httpx2

        kind = "slack" if self.for_slack else "webhook"
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as http:
            for attempt in range(ATTEMPTS):
                if attempt:
                    await asyncio.sleep(self.pause_s * attempt)
                try:
                    answered = await http.post(self.url, json=self._body(notice))
                except (httpx2.HTTPError, httpx2.InvalidURL):
                    continue
                if answered.is_success:
                    return
        log.warning("alert_not_told", alert=notice.name, to=kind)

    def _body(self, notice: Notice) -> dict[str, Any]:
        if self.for_slack:
            state = "RESOLVED" if notice.resolved else notice.level.upper()
            return {"text": f"[{state}] {notice.name} on {self.server}: {notice.summary} (now {notice.value:.3g})"}
        state = "resolved" if notice.resolved else "firing"
        # The same for both messages of one alert, so that a receiver can pair them.
        return {**asdict(notice), "state": state, "server": self.server, "dedup_key": f"{self.server}/{notice.name}"}


async def tell_all(tellers: Sequence[AlertSink], notices: Sequence[Notice]) -> None:
    """Everybody, everything, at once."""
    await asyncio.gather(*(teller.tell(notice) for notice in notices for teller in tellers))
