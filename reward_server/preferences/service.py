"""Keeps what people prefer, lists it beside what was compared, and exports both as training data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from reward_server.access import collection_for, scenario_for
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.errors import ComparisonNotFound
from reward_server.ids import IdPrefix, is_id, new_preference_id
from reward_server.preferences import documents
from reward_server.preferences.agreement import agreement, by_margin
from reward_server.preferences.export import Export, Query
from reward_server.preferences.formats import Format
from reward_server.preferences.pairs import Source
from reward_server.reward_models.reliability import Bin
from reward_server.store.records import ComparisonRow, PageEnd, PreferenceRow
from reward_server.store.store import Store
from reward_server.transcripts.transcript import Transcript
from scenarios.library import Catalog
from trainer_client.wire import Message, PreferenceRequest

MOST_LABELS = 2000
"""Of the newest, that agreement is measured on."""


@dataclass(frozen=True)
class PreferencePage:
    """A page of preferences, and where the next one begins."""

    bodies: list[Body]
    next: PageEnd | None


class PreferenceService:
    """All that can be done with preferences."""

    def __init__(self, *, store: Store, catalog: Catalog, idempotency: Idempotency, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._idempotency = idempotency
        self._clock = clock

    async def add(self, lab: Lab, request: PreferenceRequest, key: str | None) -> Body:
        """Keep what a person said.

        Raises:
            ComparisonNotFound: there is no such comparison of this lab.
        """
        work = partial(self._add, lab, request)
        # Without a note the fingerprint is as before there were notes: a retry across an upgrade finds its answer.
        told = request.model_dump(exclude=None if request.note else {"note"})
        return await self._idempotency.answer(lab, key, lambda: ("preference", told), work, outlives=False)

    async def page(
        self, lab: Lab, *, limit: int, after: PageEnd | None, collection: str | None, source: Source | None
    ) -> PreferencePage:
        """The lab's comparisons and labels, the newest first."""
        wanted = self._collections(lab, collection)
        labels: list[PreferenceRow] = []
        compared: list[ComparisonRow] = []
        async with self._store.reading() as unit:
            if source in (None, Source.LABEL):
                labels = await unit.preferences.page(lab.lab_id, limit + 1, after=after, collections=wanted)
            if source in (None, Source.COMPARE):
                compared = await unit.comparisons.page(lab.lab_id, limit + 1, after=after, collections=wanted)
        rows: list[tuple[PageEnd, Body]] = [
            (PageEnd(created_at=row.created_at, id=row.preference_id), documents.label(row)) for row in labels
        ]
        rows += [
            (PageEnd(created_at=row.created_at, id=row.comparison_id), documents.comparison(row)) for row in compared
        ]
        rows.sort(key=lambda each: (each[0].created_at, each[0].id), reverse=True)
        shown = rows[:limit]
        return PreferencePage([body for _, body in shown], shown[-1][0] if len(rows) > limit else None)

    async def agreement(self, lab: Lab, collection: str | None) -> Body:
        """The agreement of rewards with the lab's people; of the newest labels, at most `MOST_LABELS`."""
        return await asyncio.to_thread(agreement, await self._labels(lab, collection))

    async def agreement_by_margin(self, lab: Lab, collection: str | None) -> tuple[Body, Sequence[Bin]]:
        """The same, and how often the rewards agree with people by how far apart they are."""
        rows = await self._labels(lab, collection)
        return await asyncio.to_thread(lambda: (agreement(rows), by_margin(rows)))

    async def _labels(self, lab: Lab, collection: str | None) -> Sequence[PreferenceRow]:
        wanted = self._collections(lab, collection)
        async with self._store.reading() as unit:
            return await unit.preferences.page(lab.lab_id, MOST_LABELS, collections=wanted)

    def export(
        self,
        lab: Lab,
        *,
        format: Format,
        min_margin: float = 0.0,
        collection: str | None = None,
        source: Source | None = None,
        until: datetime | None = None,
        provenance: bool = True,
    ) -> Export:
        """The lab's pairs in a format."""
        query = Query(
            lab_id=lab.lab_id,
            format=format,
            until=self._clock.now() if until is None else min(until, self._clock.now()),
            min_margin=min_margin,
            collections=self._collections(lab, collection),
            source=source,
            provenance=provenance,
        )
        return Export(self._store, query)

    def _collections(self, lab: Lab, wanted: str | None) -> tuple[str, ...] | None:
        """The collections that the key may see of those wanted; None means everything."""
        if wanted is None:
            return lab.collections
        return (collection_for(lab, self._catalog, wanted).card.slug,)

    async def _add(self, lab: Lab, request: PreferenceRequest, keep: Keep) -> Body:
        compared = None if request.comparison_id is None else await self._compared(lab, request.comparison_id)
        row = self._of_comparison(lab, request, compared) if compared else self._of_pair(lab, request)
        body = documents.label(row)
        async with self._store.transaction() as unit:
            await unit.preferences.add(row)
            await keep(unit, body)
        return body

    async def _compared(self, lab: Lab, comparison_id: str) -> ComparisonRow:
        found = None
        if is_id(comparison_id, IdPrefix.COMPARISON):
            async with self._store.reading() as unit:
                found = await unit.comparisons.get(lab.lab_id, comparison_id)
        if found is None:
            raise ComparisonNotFound
        collection_for(lab, self._catalog, found.collection)
        return found

    def _of_comparison(self, lab: Lab, request: PreferenceRequest, compared: ComparisonRow) -> PreferenceRow:
        return PreferenceRow(
            preference_id=new_preference_id(),
            lab_id=lab.lab_id,
            comparison_id=compared.comparison_id,
            collection=compared.collection,
            scenario=compared.scenario,
            winner=request.winner,
            margin=request.margin,
            labeller=request.labeller,
            reward_a=compared.reward_a,
            reward_b=compared.reward_b,
            scoring_version=compared.scoring_version,
            agent_role=compared.agent_role,
            messages_a=compared.messages_a,
            messages_b=compared.messages_b,
            created_at=self._clock.now(),
            note=request.note,
        )

    def _of_pair(self, lab: Lab, request: PreferenceRequest) -> PreferenceRow:
        collection, scenario = request.collection_slug or "", request.scenario_slug or ""
        scenario_for(lab, self._catalog, collection, scenario)
        sides = [side.messages if side else [] for side in (request.response_a, request.response_b)]
        for messages in sides:
            Transcript.from_messages(messages, request.agent_role)  # refuses what nobody could learn from
        return PreferenceRow(
            preference_id=new_preference_id(),
            lab_id=lab.lab_id,
            comparison_id=None,
            collection=collection,
            scenario=scenario,
            winner=request.winner,
            margin=request.margin,
            labeller=request.labeller,
            reward_a=None,
            reward_b=None,
            scoring_version=None,
            agent_role=request.agent_role,
            messages_a=_stored(sides[0]),
            messages_b=_stored(sides[1]),
            created_at=self._clock.now(),
            note=request.note,
        )


def _stored(messages: Sequence[Message]) -> list[Body]:
    return [message.model_dump(exclude_none=True) for message in messages]
