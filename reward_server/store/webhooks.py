"""Webhooks of labs and the messages to them.

A message is claimed by moving the moment at which it is due: whoever moves it may send it, and if he is killed somebody
else may when that moment comes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after
from reward_server.store.records import DeliveryRow, DeliveryState, PageEnd, WebhookRow
from reward_server.store.session import Session
from reward_server.store.tables import WebhookDeliveryTable, WebhookTable, table_of

_HOOK = table_of(WebhookTable)
_DELIVERY = table_of(WebhookDeliveryTable)
_PENDING = _DELIVERY.c.state == DeliveryState.PENDING.value


class WebhookRepository:
    """Webhooks and messages; of one lab at a time, but for what sends them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: WebhookRow) -> None:
        """Store a webhook."""
        values = values_of(row) | {"events": list(row.events)}
        await self._session.run(lambda connection: connection.execute(insert(_HOOK), values))

    async def of(self, lab_id: str) -> list[WebhookRow]:
        """The lab's webhooks, the newest first."""
        rows = select(_HOOK).where(_HOOK.c.lab_id == lab_id)
        rows = rows.order_by(_HOOK.c.created_at.desc(), _HOOK.c.webhook_id.desc())
        return await self._session.run(lambda connection: [_hook(row) for row in connection.execute(rows).mappings()])

    async def delete(self, lab_id: str, webhook_id: str) -> bool:
        """True if there was such a webhook; its messages go with it."""

        def work(connection: Connection) -> bool:
            owned = _DELIVERY.c.lab_id == lab_id, _DELIVERY.c.webhook_id == webhook_id
            connection.execute(delete(_DELIVERY).where(*owned))
            gone = delete(_HOOK).where(_HOOK.c.lab_id == lab_id, _HOOK.c.webhook_id == webhook_id)
            return connection.execute(gone).rowcount == 1

        return await self._session.run(work)

    async def disable(self, webhook_id: str, now: datetime) -> None:
        """Send it nothing more."""
        gone = across_labs(update(_HOOK).where(_HOOK.c.webhook_id == webhook_id).values(disabled_at=now))
        await self._session.run(lambda connection: connection.execute(gone))

    async def queue(self, rows: Sequence[DeliveryRow]) -> None:
        """Store messages to be sent; none is fine."""
        if rows:
            values = [values_of(row) for row in rows]
            await self._session.run(lambda connection: connection.execute(insert(_DELIVERY), values))

    async def deliveries(
        self, lab_id: str, webhook_id: str, limit: int, *, after: PageEnd | None = None
    ) -> list[DeliveryRow]:
        """Messages to a webhook, the newest first."""
        created, own = _DELIVERY.c.created_at, _DELIVERY.c.message_id
        rows = select(_DELIVERY).where(_DELIVERY.c.lab_id == lab_id, _DELIVERY.c.webhook_id == webhook_id)
        rows = rows.order_by(created.desc(), own.desc()).limit(limit)
        if after is not None:
            rows = rows.where(is_after(created, own, after))
        return await self._session.run(
            lambda connection: [_delivery(row) for row in connection.execute(rows).mappings()]
        )

    async def again(self, lab_id: str, webhook_id: str, message_id: str, now: datetime) -> DeliveryRow | None:
        """Make a message due, with all its attempts before it; None if the lab has no such message."""
        owned = [
            _DELIVERY.c.lab_id == lab_id,
            _DELIVERY.c.webhook_id == webhook_id,
            _DELIVERY.c.message_id == message_id,
        ]
        fresh: dict[str, Any] = {"state": DeliveryState.PENDING.value, "attempts": 0, "next_at": now}

        def work(connection: Connection) -> DeliveryRow | None:
            connection.execute(update(_DELIVERY).where(*owned).values(**fresh))
            row = connection.execute(select(_DELIVERY).where(*owned)).mappings().one_or_none()
            return None if row is None else _delivery(row)

        return await self._session.run(work)

    async def due(self, now: datetime, limit: int, *, but: Collection[str] = ()) -> list[DeliveryRow]:
        """Messages to send, one of each lab at most, the longest due first; for `claim`.

        It looks through all messages that are due, so ask it of a reader, which no write waits for.

        `but`: ids of labs and webhooks whose messages are left out.
        """
        others = _DELIVERY.c.lab_id.not_in(but), _DELIVERY.c.webhook_id.not_in(but)
        order = _DELIVERY.c.next_at, _DELIVERY.c.message_id
        place = func.row_number().over(partition_by=_DELIVERY.c.lab_id, order_by=order).label("place")
        # Without the bodies, of which only the first are needed, there is far less to sort.
        placed = select(_DELIVERY.c.message_id, place).where(_PENDING, _DELIVERY.c.next_at <= now, *others).subquery()
        first = select(_DELIVERY).join(placed, placed.c.message_id == _DELIVERY.c.message_id)
        due = across_labs(first.where(placed.c.place == 1).order_by(*order).limit(limit))
        return await self._session.run(
            lambda connection: [_delivery(row) for row in connection.execute(due).mappings()]
        )

    async def claim(self, rows: Sequence[DeliveryRow], lease_until: datetime) -> list[tuple[WebhookRow, DeliveryRow]]:
        """Take messages that are `due`: nobody else gets them before `lease_until`, and each counts as tried.

        Returns those that are taken, with their webhooks. A message that was claimed, settled, made due again or
        deleted since it was read is left as it is.
        """

        hooks = across_labs(select(_HOOK).where(_HOOK.c.webhook_id.in_({row.webhook_id for row in rows})))

        def work(connection: Connection) -> list[tuple[WebhookRow, DeliveryRow]]:
            claimed: list[DeliveryRow] = []
            for row in rows:
                mine = _DELIVERY.c.message_id == row.message_id, _DELIVERY.c.attempts == row.attempts
                as_it_was = *mine, _PENDING, _DELIVERY.c.next_at == row.next_at
                after = replace(row, attempts=row.attempts + 1, next_at=lease_until)
                taken = update(_DELIVERY).where(*as_it_was).values(attempts=after.attempts, next_at=after.next_at)
                if connection.execute(across_labs(taken)).rowcount == 1:
                    claimed.append(after)
            owners = {hook["webhook_id"]: _hook(hook) for hook in connection.execute(hooks).mappings()}
            return [(owners[row.webhook_id], row) for row in claimed]

        return await self._session.run(work)

    async def settle(self, row: DeliveryRow) -> None:
        """Record the outcome of an attempt; nothing if the message was made due again meanwhile."""
        mine = _DELIVERY.c.message_id == row.message_id, _DELIVERY.c.attempts == row.attempts
        values = {name: getattr(row, name) for name in ("state", "next_at", "last_status", "last_error")}
        done = across_labs(update(_DELIVERY).where(*mine).values(**values))
        await self._session.run(lambda connection: connection.execute(done))

    async def purge(self, before: datetime) -> None:
        """Forget messages that are over and older than that."""
        over = delete(_DELIVERY).where(
            _DELIVERY.c.state != DeliveryState.PENDING.value, _DELIVERY.c.created_at < before
        )
        await self._session.run(lambda connection: connection.execute(across_labs(over)))


def _hook(row: RowMapping) -> WebhookRow:
    return WebhookRow(**{**row, "events": tuple(row["events"])})


def _delivery(row: RowMapping | dict[str, Any]) -> DeliveryRow:
    return DeliveryRow(**{**row, "state": DeliveryState(row["state"])})
