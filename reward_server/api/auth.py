"""Authentication of calls: a key or a token on every call, or everybody while the server runs open on loopback.

All failures of a key look the same. Revoked and unknown keys are told apart by nobody but the operator; that a call
brought no key at all, or a header that holds none, is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reward_server.api.credentials import Credentials
from reward_server.auth.actor import Actor
from reward_server.auth.audit import AuditLog
from reward_server.auth.failed_keys import FailedKeys, LocalFailedKeys
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.key_uses import KeyUses
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.tokens import TokenVerifier
from reward_server.errors import Unauthenticated
from reward_server.limits.rate_limiter import RateDecision, RateLimiter

RECHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Admission:
    """A caller, and what the limiter said; no decision where no limit applies."""

    lab: Lab
    decision: RateDecision | None


class Gatekeeper:
    """Authenticates and counts requests."""

    def __init__(
        self,
        keys: KeyRing,
        limiter: RateLimiter,
        *,
        open_access: bool,
        tokens: TokenVerifier | None = None,
        audit: AuditLog | None = None,
        failed: FailedKeys | None = None,
        uses: KeyUses | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self._tokens = tokens
        self._open = open_access
        self._audit = audit
        self._failed = failed or LocalFailedKeys()
        self._uses = uses
        self._monotonic = monotonic
        self._checked = monotonic()

    @property
    def open_access(self) -> bool:
        """True if calls need no key (development mode)."""
        return self._open

    async def identify(self, given: Credentials, address: str = "") -> Lab:
        """Return the lab of a caller; `Unauthenticated` if the key is missing or no good. Counted against no limit.

        Raises:
            TooManyFailedKeys: many keys of this address were no good, and this one is not, either.
        """
        key = given.key
        lab = await self._verified(key) if key else None
        if lab is not None:
            return lab
        if await self._is_open():
            return DEVELOPMENT_LAB
        if key and await self._failed.failed(address) and self._audit is not None:
            await self._audit.try_to_note(Actor("", "", address), "keys.refused", "too many invalid keys in a minute")
        raise Unauthenticated(given.refusal)

    async def admit(self, given: Credentials, address: str = "") -> Admission:
        """Return the lab of a caller, counted against its limit; `Unauthenticated` if the key is missing or no good."""
        lab = await self.identify(given, address)
        if lab.per_minute is None:
            return Admission(lab, None)
        return Admission(lab, await self._limiter.hit(lab.key_id, lab.per_minute))

    async def _verified(self, key: str) -> Lab | None:
        # No key has a full stop, and every token has two.
        if self._tokens is not None and "." in key:
            return await self._tokens.verify(key)
        lab = await self._keys.verify(key)
        if lab is not None and self._uses is not None:
            self._uses.note(lab.key_id)
        return lab

    async def _is_open(self) -> bool:
        """Development mode ends for good as soon as a key exists, also one made by another process."""
        if self._open and self._monotonic() - self._checked >= RECHECK_S:
            self._open = await self._keys.is_empty()
            self._checked = self._monotonic()
        return self._open
