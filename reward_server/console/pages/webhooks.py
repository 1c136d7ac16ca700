"""Webhooks: where a lab is told of events, what became of the messages, a new one with its secret, shown once."""

from __future__ import annotations

from fastapi import Response

from reward_server.api.body import validate
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.routes import webhooks as api
from reward_server.console import queries, view
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from reward_server.webhooks.events import WebhookEvent
from reward_server.webhooks.service import delivery, document
from trainer_client.wire import WebhookRequest

pages = Pages()


@pages.read("/webhooks", like=api.list_webhooks)
async def webhooks(visit: Visit) -> Response:
    """The lab's webhooks."""
    return await _shown(visit, "")


@pages.change("/webhooks", like=api.add_webhook)
async def add(visit: Visit) -> Response:
    """Add one; this page alone has its secret."""
    given = {"url": visit.form.line("url"), "events": visit.form.all("events") or None}
    wanted = validate(WebhookRequest, {name: value for name, value in given.items() if value is not None})
    body = await visit.services.webhooks.add(visit.lab, wanted, None)
    return await _shown(visit, body["secret"])


@pages.read("/webhooks/{webhook_id}", like=api.list_deliveries)
async def deliveries(visit: Visit, webhook_id: str) -> Response:
    """Messages to one of them."""
    query = queries.read(visit, PagedQuery)
    hook = document(await visit.services.webhooks.get(visit.lab, webhook_id))
    pager = Pager(visit.services.cursors, visit.lab.lab_id, IdPrefix.MESSAGE)
    found = await visit.services.webhooks.deliveries(
        visit.lab, webhook_id, limit=query.limit, after=pager.after(query.cursor)
    )
    shown, following = pager.shown(found, query.limit, lambda each: PageEnd(each.created_at, each.message_id))
    rows = [delivery(each) for each in shown]
    return view.page(visit, "webhook.html", hook=hook, rows=rows, more=following.get("next_cursor", ""))


@pages.change("/webhooks/{webhook_id}/test", like=api.try_webhook)
async def test(visit: Visit, webhook_id: str) -> Response:
    """Send a message, to see that it arrives."""
    await visit.services.webhooks.test(visit.lab, webhook_id)
    return view.sent(visit.request, f"{ROOT}/webhooks/{webhook_id}")


@pages.change("/webhooks/{webhook_id}/delete", like=api.delete_webhook)
async def delete(visit: Visit, webhook_id: str) -> Response:
    """Delete one, with its messages."""
    await visit.services.webhooks.delete(visit.lab, webhook_id)
    return view.sent(visit.request, f"{ROOT}/webhooks")


@pages.change("/webhooks/{webhook_id}/{message_id}/resend", like=api.resend_delivery)
async def resend(visit: Visit, webhook_id: str, message_id: str) -> Response:
    """Send a message again."""
    await visit.services.webhooks.resend(visit.lab, webhook_id, message_id)
    return view.sent(visit.request, f"{ROOT}/webhooks/{webhook_id}")


async def _shown(visit: Visit, secret: str) -> Response:
    hooks = [document(each) for each in await visit.services.webhooks.all(visit.lab)]
    return view.page(visit, "webhooks.html", hooks=hooks, secret=secret, events=[each.value for each in WebhookEvent])
