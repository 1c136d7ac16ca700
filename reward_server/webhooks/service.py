"""The webhooks of a lab: add, list, try out, delete; see messages, and have one sent again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from reward_server.auth.idempotency import Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.clock import Clock, to_iso
from reward_server.errors import Conflict, FieldProblem, InvalidRequest, WebhookNotFound
from reward_server.ids import IdPrefix, new_id
from reward_server.settings import PREFIX
from reward_server.store.records import DeliveryRow, PageEnd, WebhookRow
from reward_server.store.store import Store
from reward_server.webhooks.addresses import PrivateAddress, RefusedAddress, UnresolvedName, resolve
from reward_server.webhooks.events import TEST, WebhookEvent, message
from reward_server.webhooks.names import NameLookups
from reward_server.webhooks.signing import secret_of
from trainer_client.wire import WebhookRequest

MOST = 20
"""Webhooks of a lab."""
ALLOWING = f"{PREFIX}WEBHOOK_PRIVATE_ADDRESSES"
"""The setting that allows receivers in the server's own network."""
Body = dict[str, Any]


class WebhookService:
    """All that labs can do with webhooks."""

    def __init__(
        self,
        *,
        store: Store,
        idempotency: Idempotency,
        clock: Clock,
        pepper: bytes,
        private: bool,
        names: NameLookups,
    ) -> None:
        self._store = store
        self._idempotency = idempotency
        self._clock = clock
        self._pepper = pepper
        self._private = private
        self._names = names

    async def add(self, lab: Lab, request: WebhookRequest, key: str | None) -> Body:
        """Add one; the answer alone has its secret.

        Raises:
            InvalidRequest: the URL is not one that anything is sent to.
            Conflict: the lab has as many as it may have.
        """
        await self._check(request.url)
        work = partial(self._add, lab, request)
        body = await self._idempotency.answer(lab, key, lambda: ("webhook", request.model_dump()), work, outlives=False)
        # The stored answer is without it: the database holds no secrets of webhooks.
        return {**body, "secret": secret_of(self._pepper, body["webhook_id"])}

    async def all(self, lab: Lab) -> list[WebhookRow]:
        """The lab's webhooks, the newest first."""
        async with self._store.reading() as unit:
            return await unit.webhooks.of(lab.lab_id)

    async def get(self, lab: Lab, webhook_id: str) -> WebhookRow:
        """One of them.

        Raises:
            WebhookNotFound: the lab has none of that id.
        """
        for found in await self.all(lab):
            if found.webhook_id == webhook_id:
                return found
        raise WebhookNotFound

    async def delete(self, lab: Lab, webhook_id: str) -> Body:
        """Delete one, with its messages; raises as `get`."""
        hook = await self.get(lab, webhook_id)
        async with self._store.transaction() as unit:
            if not await unit.webhooks.delete(lab.lab_id, webhook_id):
                raise WebhookNotFound
        return document(hook)

    async def test(self, lab: Lab, webhook_id: str) -> Body:
        """Queue a message that says nothing; raises as `get`."""
        hook = await self.get(lab, webhook_id)
        row = message(hook, TEST, {"webhook_id": webhook_id}, self._clock.now())
        async with self._store.transaction() as unit:
            await unit.webhooks.queue([row])
        return delivery(row)

    async def deliveries(
        self, lab: Lab, webhook_id: str, *, limit: int, after: PageEnd | None
    ) -> Sequence[DeliveryRow]:
        """Messages to one, the newest first, one more than the limit where there is one; raises as `get`."""
        await self.get(lab, webhook_id)
        async with self._store.reading() as unit:
            return await unit.webhooks.deliveries(lab.lab_id, webhook_id, limit + 1, after=after)

    async def resend(self, lab: Lab, webhook_id: str, message_id: str) -> Body:
        """Have a message sent again, with all its attempts; raises as `get`."""
        await self.get(lab, webhook_id)
        async with self._store.transaction() as unit:
            found = await unit.webhooks.again(lab.lab_id, webhook_id, message_id, self._clock.now())
        if found is None:
            raise WebhookNotFound
        return delivery(found)

    async def _check(self, url: str) -> None:
        try:
            await resolve(url, private=self._private, names=self._names)
        except UnresolvedName:
            return  # it may have one by the time there is something to send
        except PrivateAddress as inner:
            raise InvalidRequest(errors=[FieldProblem(("url",), inner.allowed_by(ALLOWING))]) from None
        except RefusedAddress as refused:
            raise InvalidRequest(errors=[FieldProblem(("url",), str(refused))]) from None

    async def _add(self, lab: Lab, request: WebhookRequest, keep: Keep) -> Body:
        row = WebhookRow(
            webhook_id=new_id(IdPrefix.WEBHOOK),
            lab_id=lab.lab_id,
            url=request.url,
            events=tuple(request.events or [event.value for event in WebhookEvent]),
            description=request.description,
            created_at=self._clock.now(),
        )
        body = document(row)
        async with self._store.transaction() as unit:
            if len(await unit.webhooks.of(lab.lab_id)) >= MOST:
                raise Conflict(f"A lab has at most {MOST} webhooks: delete one first.")
            await unit.webhooks.add(row)
            await keep(unit, body)
        return body


def document(row: WebhookRow) -> Body:
    """A webhook as its lab sees it."""
    body: Body = {"webhook_id": row.webhook_id, "url": row.url, "events": list(row.events)}
    if row.description is not None:
        body["description"] = row.description
    body["created_at"] = to_iso(row.created_at)
    if row.disabled_at is not None:
        body["disabled_at"] = to_iso(row.disabled_at)
    return body


def delivery(row: DeliveryRow) -> Body:
    """A message as its lab sees it."""
    told = {
        "message_id": row.message_id,
        "webhook_id": row.webhook_id,
        "event": row.event,
        "state": row.state.value,
        "attempts": row.attempts,
        "next_attempt_at": to_iso(row.next_at) if row.state == "pending" else None,
        "last_status": row.last_status,
        "last_error": row.last_error,
        "created_at": to_iso(row.created_at),
    }
    return {name: value for name, value in told.items() if value is not None}
