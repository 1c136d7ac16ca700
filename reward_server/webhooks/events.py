"""Events that labs are told of, and how they are queued.

A message is stored in the transaction that makes its event true, so an event is told exactly when it has happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from reward_server.clock import to_iso
from reward_server.ids import IdPrefix, new_id
from reward_server.store.records import DeliveryRow, DeliveryState, WebhookRow
from reward_server.store.unit_of_work import UnitOfWork


class WebhookEvent(StrEnum):
    """The events there are."""

    JOB_FINISHED = "job.finished"
    BATCH_FINISHED = "evaluation_batch.finished"
    TRAINING_RUN_FINISHED = "training_run.finished"


TEST = "webhook.test"
"""Sent by hand, to every webhook that is asked to."""


async def announce(unit: UnitOfWork, lab_id: str, event: WebhookEvent, data: Mapping[str, Any], now: datetime) -> None:
    """Queue a message to each of the lab's webhooks that wants this event; call it in the event's transaction."""
    hooks = await unit.webhooks.of(lab_id)
    wanted = [hook for hook in hooks if event in hook.events and hook.disabled_at is None]
    await unit.webhooks.queue([message(hook, event.value, data, now) for hook in wanted])


def message(hook: WebhookRow, event: str, data: Mapping[str, Any], now: datetime) -> DeliveryRow:
    """A message that is due at once. `data` holds no conversation."""
    body = {"type": event, "timestamp": to_iso(now), "data": dict(data)}
    return DeliveryRow(
        message_id=new_id(IdPrefix.MESSAGE),
        webhook_id=hook.webhook_id,
        lab_id=hook.lab_id,
        event=event,
        body=json.dumps(body, separators=(",", ":"), allow_nan=False),
        state=DeliveryState.PENDING,
        attempts=0,
        next_at=now,
        last_status=None,
        last_error=None,
        created_at=now,
    )
