"""Builds what knows who is asking, and what replicas share about it."""

from __future__ import annotations

from contextlib import AsyncExitStack

from reward_server.auth.tokens import Issuer, TokenVerifier
from reward_server.clock import Clock
from reward_server.errors import ConfigurationError
from reward_server.server.chores import own
from reward_server.server.shared import Shared
from reward_server.settings import Settings
from reward_server.shared_state.events import RedisEvents
from reward_server.shared_state.leases import RedisLeases
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics


def tokens_of(settings: Settings, store: Store, clock: Clock) -> TokenVerifier | None:
    """Tokens of an issuer that the operator trusts, if there is one."""
    if settings.jwt_issuer is None or settings.jwt_audience is None or settings.jwt_key is None:
        return None
    return TokenVerifier(
        Issuer.of(settings.jwt_issuer, settings.jwt_audience, settings.jwt_key.get_secret_value()), store, clock
    )


async def shared_of(stack: AsyncExitStack, settings: Settings, metrics: Metrics) -> Shared:
    """Build what replicas share; a Redis that is lost from the start is only said, as one that is lost later."""
    if settings.redis_url is None:
        return Shared.local()
    url, deadline_s = settings.redis_url.get_secret_value(), settings.redis_deadline_s
    shared = Shared.through(url, metrics.redis_lost.set, deadline_s=deadline_s)
    if shared.link is not None:
        stack.push_async_callback(shared.link.close)
    if isinstance(shared.events, RedisEvents):
        await own(stack, shared.events.listen())
    if isinstance(shared.leases, RedisLeases):
        await own(stack, shared.leases.keep())
    return shared


def may_be_open(settings: Settings, *, keyless: bool) -> bool:
    """True if calls need no key: on loopback while there is none, and no tokens are taken.

    Elsewhere a server without keys does not start.
    """
    if not keyless or settings.jwt_key is not None:
        return False
    if not settings.is_loopback:
        raise ConfigurationError(
            f"Binding {settings.host} without an API key would open the server to everyone; "
            "create one: ./labs keys create NAME --lab LAB"
        )
    return True
