"""Keeps what language models decided, so that the same transcript has the same reward through every door.

Two layers: a bounded memory and a durable store behind it. A key is a hash over everything that the decision
depends on, and over nothing else: no lab, no nonce, no time. The first decision on a key stays. Failures are
never kept. An entry that cannot be read, or is no decision on its question, is not there: the question is decided anew,
and that takes its place in the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

import structlog

from reward_server.errors import LabsError, Unavailable
from reward_server.judges.verdict_memory import VerdictMemory
from reward_server.llm.single_flight import SingleFlight
from reward_server.transcripts.revisions import asking_digest

log = structlog.get_logger(__name__)


class VerdictStore(Protocol):
    """A store in which decisions outlive the process: JSON texts by key (64 hexadecimal digits)."""

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of these keys; those without one are missing. Raises `Unavailable`."""

    async def put_many(self, bodies: Mapping[str, str]) -> None:
        """Keep these; a key that is there already keeps its body. Raises `Unavailable`."""

    async def replace(self, key: str, damaged: str, body: str) -> None:
        """Put a body in the place of a damaged one, unless it was replaced meanwhile. Raises `Unavailable`."""


def key_of(parts: Mapping[str, Any]) -> str:
    """The key of a decision that depends on `parts` (JSON types), on revisions of our program, and on nothing else."""
    canonical = json.dumps(
        {**parts, "program": asking_digest()}, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


class VerdictCache:
    """Decisions by key; the first one stays."""

    def __init__(self, store: VerdictStore | None = None, memory: VerdictMemory | None = None) -> None:
        self._store = store
        self._memory = memory or VerdictMemory()
        self._flights: SingleFlight[Any] = SingleFlight()

    async def decision(
        self, key: str, lab_id: str, usable: Callable[[Any], bool], decide: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Return the decision under the key if it is usable, else what `decide` says, which is then kept.

        Equal questions of one lab at one time are decided once; each lab pays for its own. Whatever `decide`
        raises of the domain's errors is raised to all who wait for it, and nothing is kept.
        """

        async def outcome() -> Any:
            try:
                kept = (await self.get_many([key])).get(key)
                return kept if usable(kept) else await self.settle(key, await decide(), usable)
            except LabsError as error:
                return error.with_traceback(None)

        found = await self._flights.do((lab_id, key), outcome)
        if isinstance(found, LabsError):
            raise copy(found)  # one exception raised in several tasks would collect their tracebacks
        return found

    async def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The decisions that are known, as JSON values."""
        wanted = list(dict.fromkeys(keys))
        texts = self._memory.recall(wanted)
        missing = [key for key in wanted if key not in texts]
        if missing and self._store is not None:
            try:
                texts |= await self._store.get_many(missing)
            except Unavailable:
                log.warning("verdicts_not_read")
        read = {key: value for key, text in texts.items() if (value := _read(text)) is not None}
        self._memory.keep({key: texts[key] for key in missing if key in read})
        return read

    async def settle(self, key: str, decision: Any, usable: Callable[[Any], bool]) -> Any:
        """Keep a decision and return the one that holds: an earlier usable one, if somebody was faster."""
        earlier = _read(self._memory.recall([key]).get(key))
        if usable(earlier):
            return earlier
        text = json.dumps(decision, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        stored = await self._stored(key, text, usable)
        kept = _read(stored)
        if stored is None or not usable(kept):
            stored, kept = text, decision
        # Only now: another process may have been faster, and nobody may be told what will not stay.
        self._memory.keep({key: stored})
        return kept

    async def _stored(self, key: str, text: str, usable: Callable[[Any], bool]) -> str | None:
        """The text that the store holds under the key once it was given one; None where there is nothing to be had."""
        if self._store is None:
            return None
        try:
            await self._store.put_many({key: text})
            stored = (await self._store.get_many([key])).get(key)
            if stored is not None and not usable(_read(stored)):
                log.warning("damaged_verdict_replaced", key=key)
                await self._store.replace(key, stored, text)
                stored = (await self._store.get_many([key])).get(key)
        except Unavailable:
            log.warning("verdict_not_kept")
            return None
        return stored


def _read(text: str | None) -> Any:
    """The JSON value of a text; None for one that is damaged."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
