"""Keeps what people say of single criteria in a stored conversation, and gives it out as rows to calibrate on.

For keys with full scores: who labels a criterion sees what the judges decided and cited.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.clock import Clock, to_iso
from reward_server.episodes.machine import agent_role
from reward_server.episodes.service import EpisodeService
from reward_server.errors import FieldProblem, Forbidden, InvalidRequest, NotFound
from reward_server.evaluations.service import EvaluationService
from reward_server.ids import IdPrefix, is_id, new_label_id
from reward_server.scoring.insight import CriterionInsight, Insight, Insights
from reward_server.store.records import CriterionLabelRow, JsonObject, PageEnd
from reward_server.store.store import Store
from trainer_client.wire import CriterionLabelRequest, Message, Role

PAGE = 500
"""Labels that are read at once for an export."""
NOT_FOR_YOU = "Criteria can be labelled with a key that has full scores."
NOT_SAID = "These words are not in the conversation: copy them from it."


@dataclass(frozen=True, slots=True)
class StoredTalk:
    """A stored conversation as it was scored."""

    id: str
    collection: str
    scenario: str
    messages: Sequence[JsonObject]
    agent_role: str
    reward_config: JsonObject | None

    def holds(self, quote: str) -> bool:
        """True if somebody said this, whatever its white space and case."""
        wanted = _plain(quote)
        return any(wanted in _plain(str(each.get("content") or "")) for each in self.messages)


@dataclass(frozen=True, slots=True)
class LabelPage:
    """A page of labels, and where the next one begins."""

    rows: Sequence[CriterionLabelRow]
    next: PageEnd | None


class CriterionLabels:
    """All that can be done with labels of criteria."""

    def __init__(
        self,
        *,
        store: Store,
        episodes: EpisodeService,
        evaluations: EvaluationService,
        insights: Insights,
        idempotency: Idempotency,
        clock: Clock,
    ) -> None:
        self._store = store
        self._episodes = episodes
        self._evaluations = evaluations
        self._insights = insights
        self._idempotency = idempotency
        self._clock = clock

    async def criteria(self, lab: Lab, conversation_id: str) -> Body:
        """The criteria of a conversation, with the verdicts of the judges of this moment."""
        _, insight = await self._judged(lab, conversation_id)
        return {
            "conversation_id": conversation_id,
            "reward": insight.reward,
            "scoring_version": insight.scoring_version,
            "data": [_criterion(each) for each in insight.decided],
        }

    async def add(self, lab: Lab, request: CriterionLabelRequest, key: str | None) -> Body:
        """Keep what a person says of a criterion."""
        work = partial(self._add, lab, request)
        return await self._idempotency.answer(
            lab, key, lambda: ("criterion label", request.model_dump()), work, outlives=False
        )

    async def page(self, lab: Lab, *, limit: int, after: PageEnd | None, conversation_id: str | None) -> LabelPage:
        """The lab's labels, the newest first.

        Raises:
            Forbidden: the key has no full scores.
        """
        _require_full_scores(lab)
        async with self._store.reading() as unit:
            rows = await unit.criterion_labels.page(
                lab.lab_id,
                limit + 1,
                after=after,
                collections=lab.collections,
                having={"conversation_id": conversation_id},
            )
        shown = rows[:limit]
        return LabelPage(shown, _end(shown[-1]) if len(rows) > limit else None)

    def export(self, lab: Lab, *, scoring_version: str | None) -> AsyncIterator[bytes]:
        """The labels as lines for `labs calibrate`: of what one person says twice of a criterion, the newest.

        Raises:
            Forbidden: the key has no full scores.
        """
        _require_full_scores(lab)
        return self._lines(lab, scoring_version)

    async def _lines(self, lab: Lab, scoring_version: str | None) -> AsyncIterator[bytes]:
        until, after = self._clock.now(), None
        seen: set[tuple[str, str, str | None]] = set()
        while True:
            async with self._store.reading() as unit:
                rows = await unit.criterion_labels.page(
                    lab.lab_id,
                    PAGE,
                    after=after,
                    collections=lab.collections,
                    until=until,
                    having={"scoring_version": scoring_version},
                )
            for row in rows:
                said = (row.conversation_id, row.criterion, row.labeller)
                if said not in seen:
                    seen.add(said)
                    yield json.dumps(_calibration_row(row), separators=(",", ":")).encode() + b"\n"
            if len(rows) < PAGE:
                return
            after = _end(rows[-1])

    async def _add(self, lab: Lab, request: CriterionLabelRequest, keep: Keep) -> Body:
        talk, insight = await self._judged(lab, request.conversation_id)
        found = next((each for each in insight.decided if each.name == request.criterion), None)
        if found is None:
            names = ", ".join(each.name for each in insight.decided)
            raise InvalidRequest(errors=[FieldProblem(("criterion",), f"must be one of: {names}")])
        if request.quote is not None and not talk.holds(request.quote):
            raise InvalidRequest(errors=[FieldProblem(("quote",), NOT_SAID)])
        row = CriterionLabelRow(
            label_id=new_label_id(),
            lab_id=lab.lab_id,
            conversation_id=talk.id,
            collection=talk.collection,
            scenario=talk.scenario,
            criterion=found.name,
            dimension=found.dimension,
            worth=found.worth,
            met=request.met,
            quote=request.quote,
            labeller=request.labeller,
            note=request.note,
            status=found.status,
            value=found.value,
            judge=found.judge,
            reward=insight.reward,
            scoring_version=insight.scoring_version,
            created_at=self._clock.now(),
        )
        body = document(row)
        async with self._store.transaction() as unit:
            await unit.criterion_labels.add(row)
            await keep(unit, body)
        return body

    async def _judged(self, lab: Lab, conversation_id: str) -> tuple[StoredTalk, Insight]:
        _require_full_scores(lab)
        talk = await self._talk(lab, conversation_id)
        insight = await self._insights.of(
            talk.collection,
            talk.scenario,
            [Message.model_validate(each) for each in talk.messages],
            cast(Role, talk.agent_role),
            talk.reward_config,
            lab_id=lab.lab_id,
            named=False,
        )
        return talk, insight

    async def _talk(self, lab: Lab, conversation_id: str) -> StoredTalk:
        if is_id(conversation_id, IdPrefix.EVALUATION):
            await self._evaluations.get(lab, conversation_id)  # refuses what this key may not see
            async with self._store.reading() as unit:
                scored = await unit.evaluations.get(lab.lab_id, conversation_id)
            if scored is None:
                raise NotFound
            config = scored.reward_config
            place = (scored.evaluation_id, scored.collection, scored.scenario)
            return StoredTalk(*place, scored.messages, scored.agent_role, config)
        body = await self._episodes.get(lab, conversation_id)
        async with self._store.reading() as unit:
            played = await unit.episodes.get(lab.lab_id, conversation_id)
        if played is None:
            raise NotFound
        place = (played.episode_id, played.collection, played.scenario)
        return StoredTalk(*place, body["messages"], agent_role(played.observation_role), played.reward_config)


def document(row: CriterionLabelRow) -> Body:
    """The body of a label, without its `request_id`."""
    body = {
        "id": row.label_id,
        "conversation_id": row.conversation_id,
        "collection_slug": row.collection,
        "scenario_slug": row.scenario,
        "criterion": row.criterion,
        "dimension": row.dimension,
        "worth": row.worth,
        "met": row.met,
        "quote": row.quote,
        "labeller": row.labeller,
        "note": row.note,
        "status": row.status,
        "value": row.value,
        "judge": row.judge,
        "reward": row.reward,
        "scoring_version": row.scoring_version,
        "created_at": to_iso(row.created_at),
    }
    return {name: value for name, value in body.items() if value is not None}


def _require_full_scores(lab: Lab) -> None:
    """Without keys, who asks is who runs the server."""
    if not lab.full_scores and lab is not DEVELOPMENT_LAB:
        raise Forbidden(NOT_FOR_YOU)


def _criterion(insight: CriterionInsight) -> Body:
    body = {
        "criterion": insight.name,
        "dimension": insight.dimension,
        "worth": insight.worth,
        "status": insight.status,
        "value": insight.value,
        "judge": insight.judge,
        "quotes": [each.quote for each in insight.evidence],
    }
    return {name: value for name, value in body.items() if value is not None}


def _calibration_row(row: CriterionLabelRow) -> dict[str, Any]:
    line = {
        "reward": row.reward,
        "label": int(row.met == (row.worth == "earns")),
        "group": row.conversation_id,
        "scoring_version": row.scoring_version,
        "criterion": row.criterion,
        "status": row.status,
        "value": row.value,
        "met": row.met,
        "quote": row.quote,
        "labeller": row.labeller,
    }
    return {name: value for name, value in line.items() if value is not None}


def _end(row: CriterionLabelRow) -> PageEnd:
    return PageEnd(created_at=row.created_at, id=row.label_id)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
