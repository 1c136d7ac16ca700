"""Read: lists of episodes and evaluations, a transcript with its reward line, two of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fastapi import Response

from reward_server.access import scenario_for, visible_collections
from reward_server.api.paging import Pager
from reward_server.api.routes import episodes as api
from reward_server.api.routes import evaluate as evaluations_api
from reward_server.console import conversation, queries, reasons, snippets, view
from reward_server.console.conversation import ConversationView
from reward_server.console.criterion_labels import labelling_of
from reward_server.console.pages.play import episode_of_author, place_of
from reward_server.console.reasons import NO_REASONS, Reasons
from reward_server.console.routing import Pages
from reward_server.console.visit import Visit
from reward_server.episodes.machine import agent_role
from reward_server.errors import InvalidRequest, NotFound
from reward_server.ids import IdPrefix, is_id
from reward_server.store.browsing import LOOKED_THROUGH, BrowsedRow, BrowseFilter, Order
from reward_server.store.records import PageEnd
from scenarios.library import PublicCollection

pages = Pages()
Json = dict[str, Any]
ROWS = 40


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A stored conversation, ready to be read."""

    id: str
    body: Json
    talk: ConversationView
    messages: Sequence[Json]
    agent_role: str
    config: Json | None
    created_at: datetime

    @property
    def is_episode(self) -> bool:
        """True if it was played here; others were sent in."""
        return "episode_id" in self.body


@pages.read("/episodes", like=api.list_episodes)
async def episodes(visit: Visit) -> Response:
    """The lab's episodes."""
    return await _listed(visit, "episodes")


@pages.read("/evaluations", like=evaluations_api.read_evaluation)
async def evaluations(visit: Visit) -> Response:
    """The lab's evaluations."""
    return await _listed(visit, "evaluations")


@pages.read("/episodes/{episode_id}", like=api.read_episode)
async def episode(visit: Visit, episode_id: str) -> Response:
    """A transcript."""
    return await _read(visit, await _episode(visit, episode_id))


@pages.read("/evaluations/{evaluation_id}", like=evaluations_api.read_evaluation)
async def evaluation(visit: Visit, evaluation_id: str) -> Response:
    """A conversation that was sent to be scored."""
    return await _read(visit, await _evaluation(visit, evaluation_id))


@pages.read("/episodes/{episode_id}/reasons", like=api.read_episode)
async def why_episode(visit: Visit, episode_id: str) -> Response:
    """The reasons for the reward of an episode, for a part of a page."""
    return await _reasons(visit, await _episode(visit, episode_id))


@pages.read("/episodes/{episode_id}/code", like=api.read_episode)
async def code_episode(visit: Visit, episode_id: str) -> Response:
    """The code that scores an episode, for a part of a page: it repeats the whole conversation."""
    return _code(visit, await _episode(visit, episode_id))


@pages.read("/evaluations/{evaluation_id}/code", like=evaluations_api.read_evaluation)
async def code_evaluation(visit: Visit, evaluation_id: str) -> Response:
    """The same of an evaluation."""
    return _code(visit, await _evaluation(visit, evaluation_id))


@pages.read("/compare", like=api.list_episodes)
async def compare(visit: Visit) -> Response:
    """Two conversations side by side."""
    ids = visit.request.query_params.getlist("id")
    if len(ids) != 2:
        raise InvalidRequest("Choose two conversations to compare.")
    a, b = [await _any(visit, each.strip()) for each in ids]
    same = (a.body["collection_slug"], a.body["scenario_slug"]) == (b.body["collection_slug"], b.body["scenario_slug"])
    plot = _both(a.talk, b.talk)
    return view.page(visit, "compare.html", sides=[a, b], is_same=same, plot=plot, dimensions=_dimensions(a, b))


async def _listed(visit: Visit, kind: str) -> Response:
    wanted = queries.read(visit, queries.Filter)
    is_newest = wanted.order is Order.NEWEST
    prefix = IdPrefix.EPISODE if kind == "episodes" else IdPrefix.EVALUATION
    pager = Pager(visit.services.cursors, visit.lab.lab_id, prefix)
    after = pager.after(wanted.cursor) if is_newest else None
    skip = 0 if is_newest else wanted.skip
    rows = await _rows(visit, kind, wanted.wanted(visit), after, skip)
    more: Json = {}
    shown = rows[:ROWS]
    if len(rows) > ROWS:
        last = PageEnd(shown[-1].created_at, shown[-1].id)
        more = {"cursor": pager.following(last)["next_cursor"]} if is_newest else {"skip": skip + ROWS}
    return view.page(
        visit,
        "episodes.html",
        kind=kind,
        rows=[_seen(visit, row) for row in shown],
        filter=wanted,
        more=wanted.query(**more) if more else "",
        is_first=wanted.cursor is None and skip == 0,
        scenarios=_scenarios(visit),
        agents=await visit.services.agents.all(visit.lab) if kind == "episodes" else [],
        caps=queries.CAPS,
        searches=wanted.wanted(visit).looks_through,
        most=LOOKED_THROUGH,
    )


async def _rows(visit: Visit, kind: str, wanted: BrowseFilter, after: PageEnd | None, skip: int) -> list[BrowsedRow]:
    async with visit.services.store.reading() as unit:
        if kind == "episodes":
            now = visit.services.clock.now()
            return await unit.browsing.episodes(visit.lab.lab_id, wanted, ROWS + 1, now=now, after=after, skip=skip)
        return await unit.browsing.evaluations(visit.lab.lab_id, wanted, ROWS + 1, after=after, skip=skip)


def _seen(visit: Visit, row: BrowsedRow) -> BrowsedRow:
    """The row as this key may see it."""
    return row if visit.sees_why else replace(row, capped_by=())


def _scenarios(visit: Visit) -> list[PublicCollection]:
    return list(visible_collections(visit.lab, visit.services.catalog))


async def _any(visit: Visit, conversation_id: str) -> StoredConversation:
    if is_id(conversation_id, IdPrefix.EVALUATION):
        return await _evaluation(visit, conversation_id)
    return await _episode(visit, conversation_id)


async def _episode(visit: Visit, episode_id: str) -> StoredConversation:
    body = await visit.services.episodes.get(visit.lab, episode_id)
    async with visit.services.store.reading() as unit:
        row = await unit.episodes.get(visit.lab.lab_id, episode_id)
    if row is None:
        raise NotFound
    talk = await conversation.of_episode(visit, body)
    role = agent_role(row.observation_role)
    return StoredConversation(episode_id, body, talk, body["messages"], role, row.reward_config, row.created_at)


async def _evaluation(visit: Visit, evaluation_id: str) -> StoredConversation:
    body = await visit.services.evaluations.get(visit.lab, evaluation_id)
    async with visit.services.store.reading() as unit:
        row = await unit.evaluations.get(visit.lab.lab_id, evaluation_id)
    if row is None:
        raise NotFound
    talk = conversation.of_messages(row.messages, row.agent_role)
    scored = conversation.scored_at_the_end(talk, body)
    return StoredConversation(
        evaluation_id, body, scored, row.messages, row.agent_role, row.reward_config, row.created_at
    )


async def _read(visit: Visit, shown: StoredConversation) -> Response:
    found = scenario_for(visit.lab, visit.services.catalog, shown.body["collection_slug"], shown.body["scenario_slug"])
    why = await _why(visit, shown) if visit.is_partial else NO_REASONS
    newer, older = await _neighbours(visit, shown)
    return view.page(
        visit,
        "_transcript.html" if visit.is_partial else "transcript.html",
        shown=shown,
        body=shown.body,
        card=found.card,
        talk=shown.talk,
        why=why,
        labelling=await labelling_of(visit, shown.id) if why.insight else None,
        marked=lambda text, party, turn: reasons.marked(text, why.quotes.get((party, turn), ())),
        newer=newer,
        older=older,
        wrong_of=episode_of_author(visit, shown.body),
    )


def _code(visit: Visit, shown: StoredConversation) -> Response:
    messages = snippets.as_assistant(shown.messages, shown.agent_role)
    place = place_of(visit, shown.body["collection_slug"], shown.body["scenario_slug"])
    return view.page(visit, "_snippets.html", snippets=snippets.to_score(place, messages))


async def _reasons(visit: Visit, shown: StoredConversation) -> Response:
    why, labelling = await _why(visit, shown), await labelling_of(visit, shown.id)
    return view.page(visit, "_reasons.html", why=why, labelling=labelling)


async def _why(visit: Visit, shown: StoredConversation) -> Reasons:
    return await reasons.reasons_of(visit, shown.body, shown.messages, shown.agent_role, shown.config)


async def _neighbours(visit: Visit, shown: StoredConversation) -> tuple[str | None, ...]:
    if not shown.is_episode:
        return None, None
    here = PageEnd(shown.created_at, shown.id)
    async with visit.services.store.reading() as unit:
        return await unit.browsing.neighbours(visit.lab.lab_id, visit.lab.collections, here)


def _both(a: ConversationView, b: ConversationView) -> Json:
    """The rewards of both, by turn."""
    numbers = range(max(len(a.turns), len(b.turns)) + 1)
    lines = [{"name": name, "values": _rewards(talk, len(numbers))} for name, talk in (("A", a), ("B", b))]
    return {"kind": "line", "x": list(numbers), "lines": lines, "unit": "turn"}


def _rewards(talk: ConversationView, count: int) -> list[float | None]:
    known = {turn.number: turn.reward for turn in talk.turns}
    first: float | None = 0.0 if known.get(1) is not None else None
    return [first, *(known.get(number) for number in range(1, count))]


def _dimensions(a: StoredConversation, b: StoredConversation) -> list[tuple[str, float | None, float | None]]:
    scores = [shown.talk.last.scores if shown.talk.last else {} for shown in (a, b)]
    return [(name, scores[0].get(name), scores[1].get(name)) for name in dict.fromkeys((*scores[0], *scores[1]))]
