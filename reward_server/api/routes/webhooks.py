"""/webhooks: where a lab is told of events, and what became of the messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
from reward_server.api.paging import PagedQuery, PageQuery, Pager
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
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


@router.post("/webhooks", response_model=NewWebhookResponse, responses=answers(examples.NEW_WEBHOOK, 409))
async def add_webhook(
    request: Request,
    lab: Annotated[Lab, for_keys(*SCOPES)],
    wanted: Annotated[WebhookRequest, JsonBody(example=examples.WEBHOOK_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Be told of events at a URL; the answer alone has the secret that messages are signed with."""
    return answer(request, await services_of(request).webhooks.add(lab, wanted, key))


@router.get("/webhooks", response_model=WebhookList, responses=answers(examples.WEBHOOKS, 400))
async def list_webhooks(
    request: Request, lab: Annotated[Lab, for_keys(*SCOPES)], query: Annotated[PageQuery, Query()]
) -> Body:
    """The lab's webhooks, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.WEBHOOK)
    found = await services.webhooks.all(lab)
    shown, following = pager.page(found, query, lambda each: PageEnd(each.created_at, each.webhook_id))
    return answer(request, {"data": [document(each) for each in shown], **following})


@router.get("/webhooks/{webhook_id}", response_model=WebhookResponse, responses=answers(examples.WEBHOOK, 404))
async def read_webhook(request: Request, lab: Annotated[Lab, for_keys(*SCOPES)], webhook_id: WebhookId) -> Body:
    """One webhook."""
    return answer(request, document(await services_of(request).webhooks.get(lab, webhook_id)))


@router.delete("/webhooks/{webhook_id}", response_model=WebhookResponse, responses=answers(examples.WEBHOOK, 404))
async def delete_webhook(request: Request, lab: Annotated[Lab, for_keys(*SCOPES)], webhook_id: WebhookId) -> Body:
    """Delete a webhook, with its messages, and return it."""
    return answer(request, await services_of(request).webhooks.delete(lab, webhook_id))


@router.post("/webhooks/{webhook_id}/test", response_model=DeliveryResponse, responses=answers(examples.DELIVERY, 404))
async def try_webhook(request: Request, lab: Annotated[Lab, for_keys(*SCOPES)], webhook_id: WebhookId) -> Body:
    """Send a `webhook.test` message, to see that it arrives."""
    return answer(request, await services_of(request).webhooks.test(lab, webhook_id))


@router.get(
    "/webhooks/{webhook_id}/deliveries", response_model=DeliveryList, responses=answers(examples.DELIVERIES, 400, 404)
)
async def list_deliveries(
    request: Request,
    lab: Annotated[Lab, for_keys(*SCOPES)],
    webhook_id: WebhookId,
    query: Annotated[PagedQuery, Query()],
) -> Body:
    """Messages to a webhook, newest first; they are kept for 30 days."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.MESSAGE)
    found = await services.webhooks.deliveries(lab, webhook_id, limit=query.limit, after=pager.after(query.cursor))
    shown, following = pager.shown(found, query.limit, lambda each: PageEnd(each.created_at, each.message_id))
    return answer(request, {"data": [delivery(each) for each in shown], **following})


@router.post(
    "/webhooks/{webhook_id}/deliveries/{message_id}/resend",
    response_model=DeliveryResponse,
    responses=answers(examples.DELIVERY, 404),
)
async def resend_delivery(
    request: Request, lab: Annotated[Lab, for_keys(*SCOPES)], webhook_id: WebhookId, message_id: MessageId
) -> Body:
    """Send a message again, dead or not, with all its attempts."""
    return answer(request, await services_of(request).webhooks.resend(lab, webhook_id, message_id))
