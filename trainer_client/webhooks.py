"""The calls about webhooks as data, as `calls` has the others."""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client.calls import Call, checked, new_key, post, query_of, segment
from trainer_client.wire import (
    DeliveryList,
    DeliveryResponse,
    NewWebhookResponse,
    WebhookEvent,
    WebhookList,
    WebhookRequest,
    WebhookResponse,
)


def add_webhook(
    url: str,
    *,
    events: Sequence[WebhookEvent] | None = None,
    description: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NewWebhookResponse]:
    """POST /webhooks."""
    wanted = None if events is None else list(events)
    request = checked(WebhookRequest, url=url, events=wanted, description=description)
    return post("/webhooks", request, NewWebhookResponse, idempotency_key)


def webhooks(*, limit: int | None = None, cursor: str | None = None) -> Call[WebhookList]:
    """GET /webhooks."""
    return Call("GET", "/webhooks", WebhookList, query=query_of(limit=limit, cursor=cursor))


def get_webhook(webhook_id: str) -> Call[WebhookResponse]:
    """GET /webhooks/{id}."""
    return Call("GET", f"/webhooks/{segment(webhook_id)}", WebhookResponse)


def delete_webhook(webhook_id: str) -> Call[WebhookResponse]:
    """DELETE /webhooks/{id}."""
    return Call("DELETE", f"/webhooks/{segment(webhook_id)}", WebhookResponse)


def test_webhook(webhook_id: str) -> Call[DeliveryResponse]:
    """POST /webhooks/{id}/test."""
    return Call("POST", f"/webhooks/{segment(webhook_id)}/test", DeliveryResponse, idempotency_key=new_key())


def webhook_deliveries(webhook_id: str, *, limit: int | None = None, cursor: str | None = None) -> Call[DeliveryList]:
    """GET /webhooks/{id}/deliveries."""
    path = f"/webhooks/{segment(webhook_id)}/deliveries"
    return Call("GET", path, DeliveryList, query=query_of(limit=limit, cursor=cursor))


def resend_delivery(webhook_id: str, message_id: str) -> Call[DeliveryResponse]:
    """POST /webhooks/{id}/deliveries/{message_id}/resend."""
    path = f"/webhooks/{segment(webhook_id)}/deliveries/{segment(message_id)}/resend"
    return Call("POST", path, DeliveryResponse, idempotency_key=new_key())
