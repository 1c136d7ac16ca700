"""Sends what is due, again and again until it is taken or given up.

Everything is in the database, so a restart loses nothing, and of several servers one sends each message. A receiver may
get a message twice (a server that is killed after sending cannot say so): it tells by `webhook-id`.

A receiver may take `ATTEMPT_S` for every message. So messages go out as places become free, none waits for the slowest
of those before it, and a lab and a webhook have few of the places.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from reward_server.clock import Clock
from reward_server.errors import StoreUnavailable
from reward_server.limits.fair_threads import working_for
from reward_server.logs.logger import get_logger
from reward_server.store.records import DeliveryRow, DeliveryState, WebhookRow
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics
from reward_server.webhooks.sender import ATTEMPT_S, GONE, SendOutcome, WebhookSender
from reward_server.webhooks.signing import signed_headers

PAUSES = tuple(timedelta(seconds=s) for s in (5, 300, 1800, 7200, 18_000, 36_000, 36_000))
"""After the first attempt that failed, the second, and so on; after one more it is given up."""
ATTEMPTS = len(PAUSES) + 1
LEASE = timedelta(seconds=4 * ATTEMPT_S)
AT_ONCE = 32
AT_ONCE_OF_A_LAB = 8
AT_ONCE_OF_A_WEBHOOK = 4
LOOKS_EVERY_S = 2.0
KEPT = timedelta(days=30)

log = get_logger(__name__)


class WebhookDeliverer:
    """The one who sends."""

    def __init__(self, store: Store, sender: WebhookSender, pepper: bytes, clock: Clock, metrics: Metrics) -> None:
        self._metrics = metrics
        self._store = store
        self._sender = sender
        self._pepper = pepper
        self._clock = clock

    async def run(self) -> None:
        """Send what is due until cancelled."""
        while True:
            await self.send_due()
            await asyncio.sleep(LOOKS_EVERY_S)

    async def send_due(self) -> int:
        """Send what is due, and what becomes due meanwhile, until nothing is; how many messages that were."""
        sent = 0
        sending: dict[asyncio.Task[None], WebhookRow] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                claimed = await self._claim(sending.values())
                sending |= {group.create_task(self._deliver(hook, row)): hook for hook, row in claimed}
                sent += len(claimed)
                if claimed:
                    continue
                if not sending:
                    return sent
                over, _ = await asyncio.wait(sending, timeout=LOOKS_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                for task in over:
                    del sending[task]

    async def _claim(self, sending: Collection[WebhookRow]) -> list[tuple[WebhookRow, DeliveryRow]]:
        """Claim messages that may go out besides those on their way."""
        labs, hooks = Counter(hook.lab_id for hook in sending), Counter(hook.webhook_id for hook in sending)
        full = [name for name, count in labs.items() if count >= AT_ONCE_OF_A_LAB]
        full += [name for name, count in hooks.items() if count >= AT_ONCE_OF_A_WEBHOOK]
        if len(sending) >= AT_ONCE:
            return []
        now = self._clock.now()
        try:
            # Looking through a long backlog takes a while, and turns wait for whoever writes: so a reader looks.
            due = await self._store.read(lambda unit: unit.webhooks.due(now, AT_ONCE - len(sending), but=full))
            return await self._store.write(lambda unit: unit.webhooks.claim(due, now + LEASE)) if due else []
        except StoreUnavailable:
            log.warning("webhooks_not_looked_up")
            return []

    async def _deliver(self, hook: WebhookRow, row: DeliveryRow) -> None:
        now = self._clock.now()
        if hook.disabled_at is not None:
            outcome = SendOutcome(error="disabled")
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
        try:
            async with self._store.transaction() as unit:
                await unit.webhooks.settle(settled)
                if outcome.status == GONE:
                    await unit.webhooks.disable(hook.webhook_id, now)
        except StoreUnavailable:
            # It is sent once more when its lease is over, and the others go on.
            log.warning("webhook_not_settled", message_id=row.message_id)


def after(row: DeliveryRow, outcome: SendOutcome, clock: Clock) -> DeliveryRow:
    """The message after an attempt."""
    told = replace(row, last_status=outcome.status, last_error=outcome.error)
    if outcome.ok:
        return replace(told, state=DeliveryState.DELIVERED)
    if row.attempts >= ATTEMPTS or outcome.status == GONE or outcome.error == "disabled":
        return replace(told, state=DeliveryState.DEAD)
    return replace(told, next_at=clock.now() + PAUSES[row.attempts - 1])
