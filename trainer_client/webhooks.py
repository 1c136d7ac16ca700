"""The calls about webhooks."""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client.calls import Call, checked, new_key, post, query_of, segment
from trainer_client.methods import method, pages_of
from trainer_client.wire import (
    DeliveryList,
    DeliveryResponse,
    DeliverySummary,
    NewWebhookResponse,
    WebhookEvent,
    WebhookList,
    WebhookRequest,
    WebhookResponse,
    WebhookSummary,
)


class WebhookCalls:
    """URLs that are told of events."""

    @method
    def add_webhook(
        self,
        url: str,
        *,
        events: Sequence[WebhookEvent] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[NewWebhookResponse]:
        """Be told of events at a URL; the answer alone has the secret that messages are signed with."""
        wanted = None if events is None else list(events)
        request = checked(WebhookRequest, url=url, events=wanted, description=description)
        return post("/webhooks", request, NewWebhookResponse, idempotency_key)

    @pages_of(WebhookSummary)
    def webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> Call[WebhookList]:
        """The lab's webhooks, newest first."""
        return Call("GET", "/webhooks", WebhookList, query=query_of(limit=limit, cursor=cursor))

    @method
    def get_webhook(self, webhook_id: str) -> Call[WebhookResponse]:
        """One webhook."""
        return Call("GET", f"/webhooks/{segment(webhook_id)}", WebhookResponse)

    @method
    def delete_webhook(self, webhook_id: str) -> Call[WebhookResponse]:
        """Delete a webhook, with its messages."""
        return Call("DELETE", f"/webhooks/{segment(webhook_id)}", WebhookResponse)

    @method
    def test_webhook(self, webhook_id: str) -> Call[DeliveryResponse]:
        """Send a `webhook.test` message."""
        return Call("POST", f"/webhooks/{segment(webhook_id)}/test", DeliveryResponse, idempotency_key=new_key())

    @pages_of(DeliverySummary)
    def webhook_deliveries(
        self, webhook_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[DeliveryList]:
        """Messages to a webhook, newest first."""
        path = f"/webhooks/{segment(webhook_id)}/deliveries"
        return Call("GET", path, DeliveryList, query=query_of(limit=limit, cursor=cursor))

    @method
    def resend_delivery(self, webhook_id: str, message_id: str) -> Call[DeliveryResponse]:
        """Send a message again, dead or not, with all its attempts."""
        path = f"/webhooks/{segment(webhook_id)}/deliveries/{segment(message_id)}/resend"
        return Call("POST", path, DeliveryResponse, idempotency_key=new_key())
