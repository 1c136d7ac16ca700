"""/webhooks: where a lab is told of events, and what became of the messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response

from reward_server.api import examples
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PagedQuery, PageQuery, Pager
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from reward_server.webhooks.service import delivery, document
from trainer_client.wire import (
    DeliveryList,
    DeliveryResponse,
    NewWebhookResponse,
    WebhookList,
    WebhookRequest,
    WebhookResponse,
)

router = Router(prefix=API_PREFIX, tags=["webhooks"])
WebhookId = Annotated[str, Path(description="`wh_…`")]
MessageId = Annotated[str, Path(description="`msg_…`")]
SCOPES = (Scope.SCORE,)


@router.post("/webhooks")
@operation(
    Operation(
        NewWebhookResponse,
        WebhookRequest,
        scopes=SCOPES,
        errors=(409,),
        request_example=examples.WEBHOOK_REQUEST,
        response_example=examples.NEW_WEBHOOK,
        retryable=True,
    )
)
async def add_webhook(request: Request, lab: Caller) -> Response:
    """Be told of events at a URL; the answer alone has the secret that messages are signed with."""
    wanted = await body_as(WebhookRequest, request)
    return answer(request, await services_of(request).webhooks.add(lab, wanted, idempotency_key(request)))


@router.get("/webhooks")
@operation(Operation(WebhookList, scopes=SCOPES, errors=(400,), response_example=examples.WEBHOOKS))
async def list_webhooks(request: Request, lab: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """The lab's webhooks, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.WEBHOOK)
    found = await services.webhooks.all(lab)
    shown, following = pager.page(found, query, lambda each: PageEnd(each.created_at, each.webhook_id))
    return answer(request, {"data": [document(each) for each in shown], **following})


@router.get("/webhooks/{webhook_id}")
@operation(Operation(WebhookResponse, scopes=SCOPES, errors=(404,), response_example=examples.WEBHOOK))
async def read_webhook(request: Request, lab: Caller, webhook_id: WebhookId) -> Response:
    """One webhook."""
    return answer(request, document(await services_of(request).webhooks.get(lab, webhook_id)))


@router.delete("/webhooks/{webhook_id}")
@operation(Operation(WebhookResponse, scopes=SCOPES, errors=(404,), response_example=examples.WEBHOOK))
async def delete_webhook(request: Request, lab: Caller, webhook_id: WebhookId) -> Response:
    """Delete a webhook, with its messages, and return it."""
    return answer(request, await services_of(request).webhooks.delete(lab, webhook_id))


@router.post("/webhooks/{webhook_id}/test")
@operation(Operation(DeliveryResponse, scopes=SCOPES, errors=(404,), response_example=examples.DELIVERY))
async def try_webhook(request: Request, lab: Caller, webhook_id: WebhookId) -> Response:
    """Send a `webhook.test` message, to see that it arrives."""
    return answer(request, await services_of(request).webhooks.test(lab, webhook_id))


@router.get("/webhooks/{webhook_id}/deliveries")
@operation(Operation(DeliveryList, scopes=SCOPES, errors=(400, 404), response_example=examples.DELIVERIES))
async def list_deliveries(
    request: Request, lab: Caller, webhook_id: WebhookId, query: Annotated[PagedQuery, Query()]
) -> Response:
    """Messages to a webhook, newest first; they are kept for 30 days."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.MESSAGE)
    found = await services.webhooks.deliveries(lab, webhook_id, limit=query.limit, after=pager.after(query.cursor))
    shown, following = pager.shown(found, query.limit, lambda each: PageEnd(each.created_at, each.message_id))
    return answer(request, {"data": [delivery(each) for each in shown], **following})


@router.post("/webhooks/{webhook_id}/deliveries/{message_id}/resend")
@operation(Operation(DeliveryResponse, scopes=SCOPES, errors=(404,), response_example=examples.DELIVERY))
async def resend_delivery(request: Request, lab: Caller, webhook_id: WebhookId, message_id: MessageId) -> Response:
    """Send a message again, dead or not, with all its attempts."""
    return answer(request, await services_of(request).webhooks.resend(lab, webhook_id, message_id))
