"""Who may come in: a key on every call, or everybody while the server runs open on loopback.

All failures of a key look the same. Revoked and unknown keys are told apart by nobody but the operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reward_server.coordination.key_ring import KeyRing
from reward_server.coordination.lab import DEVELOPMENT_LAB, Lab
from reward_server.coordination.rate_limiter import Decision, RateLimiter
from reward_server.errors import Unauthenticated

REFUSAL = "Invalid or missing API key"
RECHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Admission:
    """A caller, and what the limiter said; no decision where no limit applies."""

    lab: Lab
    decision: Decision | None


class Gatekeeper:
    """Authenticates and counts requests."""

    def __init__(
        self,
        keys: KeyRing,
        limiter: RateLimiter,
        *,
        open_access: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self._open = open_access
        self._monotonic = monotonic
        self._checked = monotonic()

    @property
    def open_access(self) -> bool:
        """Whether calls need no key (development mode)."""
        return self._open

    async def identify(self, key: str | None) -> Lab:
        """Who this is; `Unauthenticated` if the key is missing or no good. Counted against no limit."""
        lab = await self._keys.verify(key) if key else None
        if lab is not None:
            return lab
        if not await self._is_open():
            raise Unauthenticated(REFUSAL)
        return DEVELOPMENT_LAB

    async def admit(self, key: str | None) -> Admission:
        """Who this is, counted against its limit; `Unauthenticated` if the key is missing or no good."""
        lab = await self.identify(key)
        if lab.per_minute is None:
            return Admission(lab, None)
        return Admission(lab, await self._limiter.hit(lab.key_id, lab.per_minute))

    async def _is_open(self) -> bool:
        """Development mode ends for good as soon as a key exists, also one made by another process."""
        if self._open and self._monotonic() - self._checked >= RECHECK_S:
            self._open = await self._keys.is_empty()
            self._checked = self._monotonic()
        return self._open
