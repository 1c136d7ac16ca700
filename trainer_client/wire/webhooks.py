"""Webhooks: where a lab is told of events, and what became of the messages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from trainer_client.wire.base import RequestModel, ResponseModel

WebhookEvent = Literal["job.finished", "evaluation_batch.finished", "training_run.finished"]


class WebhookRequest(RequestModel):
    """POST /webhooks."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    events: Annotated[list[WebhookEvent], Field(min_length=1, max_length=3)] | None = None
    """Default: all."""
    description: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class WebhookSummary(ResponseModel):
    """A webhook."""

    webhook_id: str
    url: str
    events: list[WebhookEvent]
    description: str | None = None
    created_at: str
    disabled_at: str | None = None
    """Since when nothing is sent, because the receiver answered 410."""


class WebhookResponse(WebhookSummary):
    """A webhook that was asked for."""

    request_id: str


class NewWebhookResponse(WebhookResponse):
    """Answer of POST /webhooks: the only one with the secret."""

    secret: str
    """`whsec_…`: what messages are signed with."""


class WebhookList(ResponseModel):
    """Answer of GET /webhooks."""

    data: list[WebhookSummary]
    next_cursor: str | None = None
    request_id: str


class DeliverySummary(ResponseModel):
    """A message to a webhook."""

    message_id: str
    """The `webhook-id` header, the same in every attempt."""
    webhook_id: str
    event: str
    state: Literal["pending", "delivered", "dead"]
    attempts: int
    next_attempt_at: str | None = None
    last_status: int | None = None
    last_error: str | None = None
    """Why there is no status: `timeout`, `unreachable`, `unresolved`, `refused_address`, `disabled`; or `redirect`."""
    created_at: str


class DeliveryResponse(DeliverySummary):
    """A message that was asked for."""

    request_id: str


class DeliveryList(ResponseModel):
    """Answer of GET /webhooks/{id}/deliveries."""

    data: list[DeliverySummary]
    next_cursor: str | None = None
    request_id: str
