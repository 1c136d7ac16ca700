"""Sends what is due, again and again until it is taken or given up.

Everything is in the database, so a restart loses nothing, and of several servers one sends each message. A receiver may
get a message twice (a server that is killed after sending cannot say so): it tells by `webhook-id`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from reward_server.clock import Clock
from reward_server.coordination.fair_threads import working_for
from reward_server.errors import StoreUnavailable
from reward_server.store.records import DeliveryRow, DeliveryState, WebhookRow
from reward_server.store.store import Store
from reward_server.telemetry.logs import get_logger
from reward_server.telemetry.metrics import Metrics
from reward_server.webhooks.sender import ATTEMPT_S, GONE, Outcome, Sender
from reward_server.webhooks.signing import signed_headers

PAUSES = tuple(timedelta(seconds=s) for s in (5, 300, 1800, 7200, 18_000, 36_000, 36_000))
"""After the first attempt that failed, the second, and so on; after one more it is given up."""
ATTEMPTS = len(PAUSES) + 1
LEASE = timedelta(seconds=4 * ATTEMPT_S)
AT_ONCE = 16
LOOKS_EVERY_S = 2.0
KEPT = timedelta(days=30)

log = get_logger(__name__)


class Deliverer:
    """The one who sends."""

    def __init__(self, store: Store, sender: Sender, pepper: bytes, clock: Clock, metrics: Metrics) -> None:
        self._metrics = metrics
        self._store = store
        self._sender = sender
        self._pepper = pepper
        self._clock = clock

    async def run(self) -> None:
        """Send what is due until cancelled."""
        while True:
            try:
                sent = await self.send_due()
            except StoreUnavailable:
                log.warning("webhooks_not_looked_up")
                sent = 0
            if sent < AT_ONCE:
                await asyncio.sleep(LOOKS_EVERY_S)

    async def send_due(self) -> int:
        """Send what is due now, as much as is sent at once; how many messages that were."""
        now = self._clock.now()
        async with self._store.reading() as unit:
            if not await unit.webhooks.any_due(now):
                return 0
        async with self._store.transaction() as unit:
            claimed = await unit.webhooks.claim(now, now + LEASE, AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for hook, row in claimed:
                group.create_task(self._deliver(hook, row))
        return len(claimed)

    async def _deliver(self, hook: WebhookRow, row: DeliveryRow) -> None:
        now = self._clock.now()
        if hook.disabled_at is not None:
            outcome = Outcome(error="disabled")
        else:
            headers = signed_headers(self._pepper, hook.webhook_id, row.message_id, row.body, now)
            with working_for(hook.lab_id):
                outcome = await self._sender.send(hook.url, row.body, headers)
        settled = after(row, outcome, self._clock)
        self._metrics.webhook_attempts.labels(settled.state.value).inc()
        log.info(
            "webhook",
            message_id=row.message_id,
            lab=row.lab_id,
            event_type=row.event,
            attempt=row.attempts,
            state=settled.state.value,
            status=outcome.status,
            error=outcome.error,
        )
        async with self._store.transaction() as unit:
            await unit.webhooks.settle(settled)
            if outcome.status == GONE:
                await unit.webhooks.disable(hook.webhook_id, now)


def after(row: DeliveryRow, outcome: Outcome, clock: Clock) -> DeliveryRow:
    """The message after an attempt."""
    told = replace(row, last_status=outcome.status, last_error=outcome.error)
    if outcome.ok:
        return replace(told, state=DeliveryState.DELIVERED)
    if row.attempts >= ATTEMPTS or outcome.status == GONE or outcome.error == "disabled":
        return replace(told, state=DeliveryState.DEAD)
    return replace(told, next_at=clock.now() + PAUSES[row.attempts - 1])
