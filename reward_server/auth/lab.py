"""The lab (tenant) behind a request, as its API key describes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reward_server.auth.scopes import EVERY, USUAL, Scope
from reward_server.errors import ScopeMissing
from reward_server.store.records import NO_LIMITS, LabLimitsRow


class Plan(StrEnum):
    """The plan of a key; `custom` brings a rate of its own."""

    STANDARD = "standard"
    PREMIUM = "premium"
    CUSTOM = "custom"


PLAN_RATES = {Plan.STANDARD: 60, Plan.PREMIUM: 300}
"""Requests per minute."""
CHARACTERS_PER_REQUEST = 50_000 / 3
"""To be read, for each request per minute of a plan: 1,000,000 a minute on the standard plan."""
LEAST_CHARACTERS = 1_000_000
"""A minute, however few requests a plan has: what a batch may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The caller, and what the key used allows."""

    lab_id: str
    key_id: str
    per_minute: int | None
    """Requests per minute; None means no limit."""
    collections: tuple[str, ...] | None = None
    """Collections the key may use; None means all."""
    full_scores: bool = False
    scopes: frozenset[Scope] = USUAL
    """What the key may be used for."""
    limits: LabLimitsRow = NO_LIMITS
    """Of the lab."""
    concurrency: int | None = None
    """Requests of this key in work at once; None means as many as the lab may have."""

    @property
    def characters_per_minute(self) -> int | None:
        """The most that the lab may have read in a minute; None means no limit."""
        if self.per_minute is None:
            return None
        return max(LEAST_CHARACTERS, round(self.per_minute * CHARACTERS_PER_REQUEST))

    def require(self, *scopes: Scope) -> None:
        """`ScopeMissing` unless the key has one of these scopes."""
        if self.scopes.isdisjoint(scopes):
            raise ScopeMissing(scopes=scopes)

    def may_use(self, collection: str) -> bool:
        """True if the key has access to this collection."""
        return self.collections is None or collection in self.collections

    def may_use_all(self, collections: Sequence[str] | None) -> bool:
        """True if the key has access to all of these collections; None stands for all there are."""
        return self.collections is None or (collections is not None and set(self.collections).issuperset(collections))


DEVELOPMENT_LAB = Lab(lab_id="development", key_id="development", per_minute=None, scopes=EVERY)
"""Everybody, on a loopback server without keys."""
