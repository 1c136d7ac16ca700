"""Builds the infrastructure of a server: the store, keys and tenants, and what replicas share."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from reward_server.auth.actor import SERVER_START
from reward_server.auth.audit import AuditLog
from reward_server.auth.idempotency import DetachedWork, Idempotency
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
from reward_server.webhooks.names import NameLookups


@dataclass(frozen=True)
class BuildInputs:
    """Settings, ports, metrics and traces that a server is built from."""

    settings: Settings
    ports: Ports
    metrics: Metrics
    traces: Traces


@dataclass(frozen=True)
class Infrastructure:
    """The parts that services are built on: store, keys, tenants, usage, what replicas share."""

    store: Store
    pepper: bytes
    shared: Shared
    keys: KeyRing
    open_access: bool
    tenants: Tenants
    usage: UsageMeter
    key_uses: KeyUses
    audit: AuditLog
    outliving: DetachedWork
    idempotency: Idempotency
    names: NameLookups = field(default_factory=NameLookups)
    """What labs give is looked up here alone."""


async def build_infrastructure(stack: AsyncExitStack, inputs: BuildInputs) -> Infrastructure:
    """Open the store and build the parts that need nothing else, or raise an error that says what is missing."""
    settings, clock = inputs.settings, inputs.ports.clock
    store = await _opened_store(stack, inputs)
    pepper = await asyncio.to_thread(pepper_of, settings)
    shared = await shared_of(stack, settings, inputs.metrics)
    keys = KeyRing(store, clock, pepper, events=shared.events)
    open_access = await _require_safe(inputs, keys)
    tenants = Tenants(store, clock, shared.events, settings.folders_of)
    if open_access:
        # Whoever calls without a key is a lab like any other: it can be listed, and its data deleted.
        await tenants.ensure(DEVELOPMENT_LAB.lab_id, by=SERVER_START)
    outliving = DetachedWork(settings.batch_deadline_s)
    usage = UsageMeter(store, clock)
    stack.push_async_callback(usage.flush)
    key_uses = KeyUses(store, clock)
    stack.push_async_callback(key_uses.flush)
    return Infrastructure(
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


async def _opened_store(stack: AsyncExitStack, inputs: BuildInputs) -> Store:
    """The database, for an SQLite file nobody else's, and migrated: not under a server that runs."""
    if inputs.ports.serves and inputs.ports.turn is None:
        stack.enter_context(occupied(inputs.settings.database))
    await migrate(inputs.settings.database)
    store = await Store.open(inputs.settings.database)
    stack.push_async_callback(store.close)
    return store


async def _require_safe(inputs: BuildInputs, keys: KeyRing) -> bool:
    """True if calls need no key; an error where that, or anything else, is too weak."""
    settings, serves = inputs.settings, inputs.ports.serves
    await keys.note_pepper()
    keyless = await keys.is_empty()
    await asyncio.to_thread(partial(require_strong, settings, keyless=keyless and serves))
    return serves and may_be_open(settings, keyless=keyless)
