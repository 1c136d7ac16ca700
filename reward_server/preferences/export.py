"""A lab's preference pairs as lines of a file, and the manifest that says what is in it.

Read page by page, so it takes no more memory for a million pairs than for a thousand, but for 32 bytes each to tell
duplicates. Everything stored up to a moment is in it: the same query with the same `until` gives the same bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from reward_server.clock import to_iso
from reward_server.preferences.dialogue import NotAPair
from reward_server.preferences.formats import Format, row_of
from reward_server.preferences.pairs import (
    PlayedEpisode,
    PreferencePair,
    Source,
    couples,
    of_comparison,
    of_episodes,
    of_label,
)
from reward_server.store.records import ComparisonRow, FinishedEpisode, PageEnd, PreferenceRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork

VERSION = "1"
"""Of the lines and the manifest."""
PAGE = 100
JsonObject = dict[str, Any]
R = TypeVar("R", ComparisonRow, PreferenceRow)


@dataclass(frozen=True, kw_only=True)
class Query:
    """The conditions of an export."""

    lab_id: str
    format: Format
    until: datetime
    min_margin: float = 0.0
    collections: tuple[str, ...] | None = None
    """None means all."""
    source: Source | None = None
    provenance: bool = True

    def wants(self, source: Source) -> bool:
        """True if pairs of this source are wanted."""
        return self.source in (None, source)


@dataclass
class Manifest:
    """The contents of an export; complete when its last line is out."""

    query: Query
    by_source: Counter[str] = field(default_factory=Counter)
    by_scenario: Counter[str] = field(default_factory=Counter)
    by_version: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, pair: PreferencePair, line: bytes) -> None:
        """Count a line."""
        told = pair.provenance
        self.by_source[pair.source.value] += 1
        self.by_scenario[f"{told['collection_slug']}/{told['scenario_slug']}"] += 1
        self.by_version[told.get("scoring_version", "none")] += 1
        self.size += len(line)
        self.digest.update(line)

    def to_json(self) -> JsonObject:
        """The manifest as it is sent and written."""
        return {
            "version": VERSION,
            "format": self.query.format.value,
            "until": to_iso(self.query.until),
            "min_margin": self.query.min_margin,
            "pairs": self.by_source.total(),
            "sources": dict(sorted(self.by_source.items())),
            "scenarios": dict(sorted(self.by_scenario.items())),
            "scoring_versions": dict(sorted(self.by_version.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "bytes": self.size,
            "sha256": self.digest.hexdigest(),
        }


class Export:
    """One reading of a lab's pairs."""

    def __init__(self, store: Store, query: Query) -> None:
        self._store = store
        self._query = query
        self._seen: dict[bytes, bytes] = {}
        self.manifest = Manifest(query)

    async def parts(self) -> AsyncIterator[bytes]:
        """The lines, some at a time; people's words first, and of each source the newest first."""
        async for makers in self._candidates():
            lines = await asyncio.to_thread(self._lines, makers)
            if lines:
                yield lines

    async def _candidates(self) -> AsyncIterator[Sequence[Callable[[], PreferencePair]]]:
        query = self._query
        if query.wants(Source.LABEL):
            async for labels in self._pages(lambda unit: unit.preferences.page, _label_end):
                yield [lambda row=row: of_label(row) for row in labels]  # type: ignore[misc]
        if query.wants(Source.COMPARE):
            async for compared in self._pages(lambda unit: unit.comparisons.page, _comparison_end):
                yield [lambda row=row: of_comparison(row) for row in compared]  # type: ignore[misc]
        if query.wants(Source.EPISODES):
            async for makers in self._episodes():
                yield makers

    async def _pages(
        self, page_of: Callable[[UnitOfWork], Any], end_of: Callable[[R], PageEnd]
    ) -> AsyncIterator[Sequence[R]]:
        """A page at a time, each in a reading of its own: whoever takes the lines slowly holds no connection."""
        query, after = self._query, None
        while True:
            async with self._store.reading() as unit:
                rows: Sequence[R] = await page_of(unit)(
                    query.lab_id, PAGE, after=after, collections=query.collections, until=query.until
                )
            if rows:
                yield rows
            if len(rows) < PAGE:
                return
            after = end_of(rows[-1])

    async def _episodes(self) -> AsyncIterator[Sequence[Callable[[], PreferencePair]]]:
        query = self._query
        async with self._store.reading() as unit:
            finished = await unit.episodes.finished(query.lab_id, until=query.until, collections=query.collections)
        found = couples(finished)
        while some := list(islice(found, PAGE)):
            wanted = {each.episode_id for couple in some for each in couple}
            async with self._store.reading() as unit:
                episodes = await unit.episodes.named(query.lab_id, sorted(wanted))
                turns = await unit.episodes.turns_of(query.lab_id, sorted(wanted))
            played = {name: PlayedEpisode(row, turns[name]) for name, row in episodes.items()}
            yield [_couple(better, worse, played) for better, worse in some if _here(better, worse, played)]

    def _lines(self, makers: Sequence[Callable[[], PreferencePair]]) -> bytes:
        lines: list[bytes] = []
        for make in makers:
            try:
                pair = make()
                self._check(pair)
                row = row_of(pair, self._query.format, provenance=self._query.provenance)
            except NotAPair as why:
                self.manifest.left_out[str(why)] += 1
                continue
            self._seen[_names(pair.prompt, pair.chosen, pair.rejected)] = _digest(_text(pair.chosen))
            line = _text(row) + b"\n"
            self.manifest.add(pair, line)
            lines.append(line)
        return b"".join(lines)

    def _check(self, pair: PreferencePair) -> None:
        if pair.margin is not None and pair.margin < self._query.min_margin:
            raise NotAPair("margin")
        chosen = self._seen.get(_names(pair.prompt, pair.chosen, pair.rejected))
        if chosen is not None:
            raise NotAPair("duplicate" if chosen == _digest(_text(pair.chosen)) else "contradicts")


def _here(better: FinishedEpisode, worse: FinishedEpisode, played: dict[str, PlayedEpisode]) -> bool:
    # A lab may have deleted one meanwhile.
    return better.episode_id in played and worse.episode_id in played


def _couple(
    better: FinishedEpisode, worse: FinishedEpisode, played: dict[str, PlayedEpisode]
) -> Callable[[], PreferencePair]:
    return lambda: of_episodes(played[better.episode_id], played[worse.episode_id], better.created_at)


def _label_end(row: PreferenceRow) -> PageEnd:
    return PageEnd(created_at=row.created_at, id=row.preference_id)


def _comparison_end(row: ComparisonRow) -> PageEnd:
    return PageEnd(created_at=row.created_at, id=row.comparison_id)


def _names(prompt: object, one: object, other: object) -> bytes:
    """Names two conversations, in whichever order."""
    sides = sorted((_text(one), _text(other)))
    return _digest(b"\0".join([_text(prompt), *sides]))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _text(value: object) -> bytes:
    # ASCII, because readers that split a file into lines may also split at U+2028 and its like.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
