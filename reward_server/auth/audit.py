"""Keeps events that change nothing themselves: calls of operators, exports, keys that were refused."""

from __future__ import annotations

from reward_server.auth.actor import Actor
from reward_server.clock import Clock
from reward_server.errors import StoreUnavailable
from reward_server.logs.logger import get_logger
from reward_server.store.store import Store

log = get_logger(__name__)


class AuditLog:
    """Appends to the audit log. What changes something writes its event in the transaction of the change instead."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def note(self, by: Actor, action: str, target: str = "") -> None:
        """Keep an event; `StoreUnavailable` if that cannot be done."""
        log.info("audit", action=action, target=target, lab=by.lab_id, actor=by.name, address=by.address)
        async with self._store.transaction() as work:
            await work.audit.add(by.did(self._clock.now(), action, target))

    async def try_to_note(self, by: Actor, action: str, target: str = "") -> None:
        """The same, where a refusal has to go out whether or not it can be kept."""
        try:
            await self.note(by, action, target)
        except StoreUnavailable:
            log.warning("audit_not_kept", action=action)
