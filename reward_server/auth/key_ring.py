"""API keys: made once, shown once, verified on every request.

A key is `lab_<key id>_<secret>`. Stored is an HMAC of it under a secret pepper: the keys are random, so a slow
password hash would protect nothing and cost every request. What is known about a key is remembered for a
second, which is how long a key revoked by another process may still work.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from reward_server.auth.actor import COMMAND_LINE, Actor
from reward_server.auth.lab import PLAN_RATES, Lab, Plan
from reward_server.auth.scopes import USUAL, Scope, in_order
from reward_server.clock import Clock
from reward_server.errors import ConfigurationError, FieldProblem, InvalidRequest, KeyNotFound
from reward_server.ids import is_lab_id, random_token
from reward_server.shared_state.events import KEY_CHANGED, LAB_CHANGED, Events, LocalEvents
from reward_server.store.records import NO_LIMITS, KeyRow, LabLimitsRow, LabRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork

CACHE_S = 1.0
CACHE_KEYS = 4096
MAX_NAME_CHARACTERS = 200

_KEY = re.compile(r"lab_(?P<key_id>[a-z2-7]{16})_[a-z2-7]{40}")
_NO_DIGEST = bytes(32)
PEPPER_FACT = "pepper-fingerprint"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A fresh key; `text` exists nowhere else and cannot be shown again."""

    row: KeyRow
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Known:
    """A key as it was when it was last looked up, and what it says of its lab."""

    at_s: float
    row: KeyRow
    lab: Lab


class KeyRing:
    """All API keys of this server."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        pepper: bytes,
        *,
        events: Events | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        # Prepared once, and copied: `hmac.digest` reads the pepper anew and lets other threads in, in each request.
        self._peppered = hmac.new(pepper, digestmod="sha256")
        self._monotonic = monotonic
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._looking: dict[str, asyncio.Event] = {}
        """Keys that are being looked up: whoever needs one meanwhile waits for what is found."""
        self._events = LocalEvents() if events is None else events
        self._events.hear(KEY_CHANGED, self._forget)
        self._events.hear(LAB_CHANGED, lambda _: self._forget_all())

    async def create(
        self,
        lab_id: str,
        *,
        name: str = "",
        plan: Plan = Plan.STANDARD,
        rate_per_minute: int | None = None,
        collections: Sequence[str] | None = None,
        full_scores: bool = False,
        scopes: Iterable[Scope] = USUAL,
        expires_in: timedelta | None = None,
        concurrency: int | None = None,
        by: Actor = COMMAND_LINE,
    ) -> NewKey:
        """Make and store a key, and its lab where there is none.

        `ConfigurationError` where the pepper is not that of the keys there are.
        """
        _check(lab_id, name, plan, rate_per_minute)
        now = self._clock.now()
        key_id = random_token(16)
        text = f"lab_{key_id}_{random_token(40)}"
        row = KeyRow(
            key_id=key_id,
            lab_id=lab_id,
            name=name,
            digest=self._digest(text),
            plan=plan,
            rate_per_minute=rate_per_minute,
            collections=None if collections is None else tuple(collections),
            full_scores=full_scores,
            scopes=in_order(scopes),
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
            concurrency=concurrency,
        )
        async with self._store.transaction() as work:
            _require_same(await work.facts.learn(PEPPER_FACT, self._fingerprint()), self._fingerprint())
            if await work.labs.add(LabRow(lab_id=lab_id, name="", created_at=now)):
                await work.audit.add(by.did(now, "lab.created", lab_id))
            await work.keys.add(row)
            await work.audit.add(by.did(now, "key.created", f"{key_id} of {lab_id} for {' '.join(row.scopes)}"))
        return NewKey(row, text)

    async def verify(self, text: str) -> Lab | None:
        """Return the lab of a key; None if it is malformed, unknown or revoked."""
        match = _KEY.fullmatch(text)
        if match is None:
            return None
        known = await self._look_up(match["key_id"])
        row = None if known is None else known.row
        # An unknown key is compared too, so that the time taken does not tell which key ids exist.
        genuine = hmac.compare_digest(self._digest(text), _NO_DIGEST if row is None else row.digest)
        if known is None or row is None or not genuine or row.revoked_at is not None or self._has_expired(row):
            return None
        return known.lab

    async def check_pepper(self) -> None:
        """`ConfigurationError` if the keys were hashed with another pepper than this one: none of them would work."""
        async with self._store.reading() as work:
            known, keyless = await work.facts.get(PEPPER_FACT), await work.keys.count() == 0
        if known is not None and not keyless:
            _require_same(known, self._fingerprint())

    async def note_pepper(self) -> None:
        """`check_pepper`, and remember it for keys that were made before it was remembered."""
        await self.check_pepper()
        async with self._store.transaction() as work:
            await work.facts.learn(PEPPER_FACT, self._fingerprint())

    async def revoke(self, key_id: str, by: Actor = COMMAND_LINE) -> KeyRow:
        """End a key, here at once and elsewhere within a second; one that was revoked before stays so."""
        now = self._clock.now()
        async with self._store.transaction() as work:
            row = await work.keys.get(key_id)
            if row is None:
                raise KeyNotFound
            if await work.keys.revoke(key_id, now):
                await work.audit.add(by.did(now, "key.revoked", f"{key_id} of {row.lab_id}"))
                row = replace(row, revoked_at=now)
        await self._events.tell(KEY_CHANGED, key_id)
        return row

    async def forget(self, key_id: str, by: Actor = COMMAND_LINE) -> None:
        """End a key as `revoke` does, and drop it from the list; the audit log keeps that there was one."""
        async with self._store.transaction() as work:
            row = await work.keys.get(key_id)
            if row is None:
                return
            await work.keys.delete(key_id)
            if row.revoked_at is None:
                await work.audit.add(by.did(self._clock.now(), "key.revoked", f"{key_id} of {row.lab_id}"))
        await self._events.tell(KEY_CHANGED, key_id)

    async def list(self) -> list[KeyRow]:
        """All keys, oldest first, revoked ones included."""
        async with self._store.reading() as work:
            return await work.keys.list()

    async def is_empty(self) -> bool:
        """True if there is no key, not even a revoked one."""
        async with self._store.reading() as work:
            return await work.keys.count() == 0

    def _forget(self, key_id: str) -> None:
        self._known.pop(key_id, None)
        self._looking.pop(key_id, None)

    def _forget_all(self) -> None:
        self._known.clear()
        self._looking.clear()

    def _remembered(self, key_id: str) -> _Known | None:
        known = self._known.get(key_id)
        return known if known is not None and self._monotonic() - known.at_s < CACHE_S else None

    async def _look_up(self, key_id: str) -> _Known | None:
        known = self._remembered(key_id)
        if known is None and (looking := self._looking.get(key_id)) is not None:
            await looking.wait()
            known = self._remembered(key_id)
        if known is not None:
            return known
        done = self._looking[key_id] = asyncio.Event()
        try:
            known = await self._read(key_id)
            # Unknown ids are not remembered: whoever guesses could fill the memory with them. Neither is what may have
            # changed while it was read.
            if known is not None and self._looking.get(key_id) is done:
                self._remember(key_id, known)
            return known
        finally:
            if self._looking.get(key_id) is done:
                del self._looking[key_id]
            done.set()

    async def _read(self, key_id: str) -> _Known | None:
        now = self._monotonic()

        async def find(work: UnitOfWork) -> tuple[KeyRow | None, LabRow | None]:
            row = await work.keys.get(key_id)
            return row, None if row is None else await work.labs.get(row.lab_id)

        row, lab = await self._store.read(find)
        return None if row is None else _Known(now, row, _lab(row, NO_LIMITS if lab is None else lab.limits))

    def _remember(self, key_id: str, known: _Known) -> None:
        self._known[key_id] = known
        self._known.move_to_end(key_id)
        if len(self._known) > CACHE_KEYS:
            self._known.popitem(last=False)

    def _has_expired(self, row: KeyRow) -> bool:
        return row.expires_at is not None and self._clock.now() >= row.expires_at

    def _fingerprint(self) -> str:
        return self._digest("labs/pepper").hex()[:32]

    def _digest(self, text: str) -> bytes:
        salted = self._peppered.copy()
        salted.update(text.encode())
        return salted.digest()


def _require_same(known: str, ours: str) -> None:
    if not hmac.compare_digest(known, ours):
        raise ConfigurationError(
            "The API keys in this database were made with another pepper, so none of them would work: bring back the "
            "file `pepper` of the data folder (or LABS_PEPPER) from a backup"
        )


def _lab(row: KeyRow, limits: LabLimitsRow) -> Lab:
    return Lab(
        lab_id=row.lab_id,
        key_id=row.key_id,
        per_minute=PLAN_RATES.get(Plan(row.plan), row.rate_per_minute),
        collections=row.collections,
        full_scores=row.full_scores,
        limits=limits,
        concurrency=row.concurrency,
        scopes=frozenset(Scope(scope) for scope in row.scopes),
    )


def require_lab_id(lab_id: str) -> None:
    """`InvalidRequest` unless a lab may be called so."""
    if not is_lab_id(lab_id):
        problem = FieldProblem(("lab_id",), "must be at most 64 lower-case letters, digits and hyphens")
        raise InvalidRequest(f"{problem.loc[0]}: {problem.msg}", [problem])


def _check(lab_id: str, name: str, plan: Plan, rate_per_minute: int | None) -> None:
    problems: list[FieldProblem] = []
    try:
        require_lab_id(lab_id)
    except InvalidRequest as error:
        problems += error.errors
    if len(name) > MAX_NAME_CHARACTERS:
        problems.append(FieldProblem(("name",), f"must have {MAX_NAME_CHARACTERS} characters at most"))
    if (plan is Plan.CUSTOM) != (rate_per_minute is not None):
        problems.append(FieldProblem(("rate_per_minute",), "is allowed with the custom plan only"))
    elif rate_per_minute is not None and rate_per_minute < 1:
        problems.append(FieldProblem(("rate_per_minute",), "must be at least 1"))
    if problems:
        raise InvalidRequest("; ".join(f"{problem.loc[0]}: {problem.msg}" for problem in problems), problems)
