"""Builds what everything else stands on: the store, who may ask, and what is remembered of their requests."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from reward_server.auth.actor import SERVER_START
from reward_server.auth.audit import AuditLog
from reward_server.auth.idempotency import Idempotency, Outliving
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.key_uses import KeyUses
from reward_server.auth.lab import DEVELOPMENT_LAB
from reward_server.auth.pepper import pepper_of
from reward_server.auth.tenants import Tenants
from reward_server.limits.usage import UsageMeter
from reward_server.production import require_strong
from reward_server.server.callers import may_be_open, shared_of
from reward_server.server.ports import Ports
from reward_server.server.shared import Shared
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.occupancy import occupied
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces
from reward_server.webhooks.names import Names


@dataclass(frozen=True)
class Given:
    """What a server is built from."""

    settings: Settings
    ports: Ports
    metrics: Metrics
    traces: Traces


@dataclass(frozen=True)
class Ground:
    """What everything else stands on."""

    store: Store
    pepper: bytes
    shared: Shared
    keys: KeyRing
    open_access: bool
    tenants: Tenants
    usage: UsageMeter
    key_uses: KeyUses
    audit: AuditLog
    outliving: Outliving
    idempotency: Idempotency
    names: Names = field(default_factory=Names)
    """What labs give is looked up here alone."""


async def ground_of(stack: AsyncExitStack, given: Given) -> Ground:
    """Open the store and build what stands on it alone, or raise an error that says what is missing."""
    settings, clock = given.settings, given.ports.clock
    store = await _opened_store(stack, given)
    pepper = await asyncio.to_thread(pepper_of, settings)
    shared = await shared_of(stack, settings, given.metrics)
    keys = KeyRing(store, clock, pepper, events=shared.events)
    open_access = await _require_safe(given, keys)
    tenants = Tenants(store, clock, shared.events, settings.folders_of)
    if open_access:
        # Whoever calls without a key is a lab like any other: it can be listed, and its data deleted.
        await tenants.ensure(DEVELOPMENT_LAB.lab_id, by=SERVER_START)
    outliving = Outliving(settings.batch_deadline_s)
    usage = UsageMeter(store, clock)
    stack.push_async_callback(usage.flush)
    key_uses = KeyUses(store, clock)
    stack.push_async_callback(key_uses.flush)
    return Ground(
        store=store,
        pepper=pepper,
        shared=shared,
        keys=keys,
        open_access=open_access,
        tenants=tenants,
        usage=usage,
        key_uses=key_uses,
        audit=AuditLog(store, clock),
        outliving=outliving,
        idempotency=Idempotency(store, clock, outliving, shared.locks),
    )


async def _opened_store(stack: AsyncExitStack, given: Given) -> Store:
    """The database, for an SQLite file nobody else's, and migrated: not under a server that runs."""
    if given.ports.serves and given.ports.turn is None:
        stack.enter_context(occupied(given.settings.database))
    await migrate(given.settings.database)
    store = await Store.open(given.settings.database)
    stack.push_async_callback(store.close)
    return store


async def _require_safe(given: Given, keys: KeyRing) -> bool:
    """Whether calls need no key; an error where that, or anything else, is too weak."""
    settings, serves = given.settings, given.ports.serves
    await keys.note_pepper()
    keyless = await keys.is_empty()
    await asyncio.to_thread(partial(require_strong, settings, keyless=keyless and serves))
    return serves and may_be_open(settings, keyless=keyless)
