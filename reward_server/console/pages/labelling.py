"""Label: two conversations side by side, blind and in random order; which is better, by keyboard; export for training.

A page carries its pair sealed, so that a label can be given after a restart, and nobody reads in it what it is.
"""

from __future__ import annotations

import random
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse

from reward_server.access import scenario_for
from reward_server.api.body import validate
from reward_server.api.query import QueryModel
from reward_server.api.routes import preferences as api
from reward_server.console import conversation, pairs, queries, view
from reward_server.console.claims import Claims
from reward_server.console.labeller import person_of, remember
from reward_server.console.pairs import GOLD, ConversationPair, Labels
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.errors import InvalidRequest, NotFound
from reward_server.preferences.formats import Format
from reward_server.transcripts.weight import weight_of_all
from trainer_client.wire import PreferenceRequest

pages = Pages()
Json = dict[str, Any]
_STATE = "console_claims"
CHOICES = {"a": "a", "b": "b", "tie": "tie"}


class LabelQuery(QueryModel):
    """The choice to show pairs that others labelled, too."""

    overlap: bool = False


@pages.read("/label", like=api.add_preference)
async def label(visit: Visit) -> Response:
    """The next pair for whoever labels."""
    overlap = queries.read(visit, LabelQuery).overlap
    person = person_of(visit)
    labels = await pairs.labels_of(visit)
    if not person:
        return view.page(visit, "labeller.html", people=labels.people(), formats=list(Format))
    pair = await _next(visit, labels, person, overlap=overlap)
    progress = {"person": person, "overlap": overlap, **_progress(labels, person)}
    if pair is None:
        return view.page(visit, "label_done.html", formats=list(Format), **progress)
    _claims(visit).claim(_place(visit, pair.key), person, visit.services.clock.now())
    swapped = random.random() < 0.5  # noqa: S311 (which side is shown first)
    sides = [pair.b, pair.a] if swapped else [pair.a, pair.b]
    carried = {"source": pair.source, "key": pair.key, "swapped": swapped}
    return view.page(
        visit,
        "label.html",
        card=scenario_for(visit.lab, visit.services.catalog, pair.collection, pair.scenario).card,
        sides=[conversation.of_messages(side, pair.agent_role) for side in sides],
        pair=visit.sessions.seal_value(carried),
        formats=list(Format),
        **progress,
    )


@pages.change("/label", like=api.add_preference)
async def give(visit: Visit) -> Response:
    """Keep a label, or skip the pair."""
    person, form = person_of(visit), visit.form
    again = f"{ROOT}/label" + ("?overlap=true" if form.line("overlap") else "")
    carried = visit.sessions.open_value(form.line("pair"))
    if carried is None or not person:
        raise InvalidRequest("This pair cannot be read any more. Load the page again.")
    place, choice = _place(visit, carried["key"]), form.line("choice")
    if choice == "skip":
        _claims(visit).skip(place, person)
        return view.sent(visit.request, again)
    pair = await pairs.found_again(visit, tuple(carried["source"]))
    if pair is None:
        raise NotFound("This pair is not there any more.")
    note = form.line("note").replace("\r\n", "\n")
    told = _request(pair, choice, person, swapped=carried["swapped"]) | ({"note": note} if note else {})
    wanted = validate(PreferenceRequest, told)
    weight_of_all(side.messages for side in (wanted.response_a, wanted.response_b) if side)
    # Two clicks, or a page that is sent again, are one label.
    once = f"console/{carried['key']}/{person}"[:255] if person.isascii() and person.isprintable() else None
    await visit.services.preferences.add(visit.lab, wanted, once)
    _claims(visit).leave(place)
    return view.sent(visit.request, again)


@pages.change("/label/person", like=api.add_preference)
async def introduce(visit: Visit) -> Response:
    """Say under which name to label; an empty one is forgotten."""
    response = view.sent(visit.request, f"{ROOT}/label")
    remember(visit, response, visit.form.line("person"))
    return response


@pages.read("/label/export", like=api.export_preferences)
async def export(visit: Visit) -> Response:
    """The lab's labels as a file for preference training."""
    query = queries.read(visit, api.ExportQuery)
    found = visit.services.preferences.export(
        visit.lab,
        format=query.format,
        min_margin=query.min_margin,
        collection=query.collection_slug,
        source=query.source,
        until=query.until,
        provenance=query.provenance,
    )
    headers = {"Content-Disposition": f'attachment; filename="labs-{query.format.value}.jsonl"'}
    return StreamingResponse(found.parts(), media_type=api.JSON_LINES, headers=headers)


@pages.read("/labels/{preference_id}", like=api.list_preferences)
async def read(visit: Visit, preference_id: str) -> Response:
    """The page of a label, beside what was compared."""
    labels = await pairs.labels_of(visit)
    row = next((each for each in labels.rows if each.preference_id == preference_id), None)
    if row is None:
        raise NotFound("There is no such label among the newest.")
    sides = [conversation.of_messages(each, row.agent_role) for each in (row.messages_a, row.messages_b)]
    return view.page(visit, "one_label.html", row=row, sides=sides)


async def _next(visit: Visit, labels: Labels, person: str, *, overlap: bool) -> ConversationPair | None:
    claims, now = _claims(visit), visit.services.clock.now()
    async for pair in pairs.candidates(visit, labels, person, overlap=overlap):
        place = _place(visit, pair.key)
        if not claims.is_skipped(place, person) and (overlap or claims.is_free(place, person, now)):
            return pair
    return None


def _request(pair: ConversationPair, choice: str, person: str, *, swapped: bool) -> Json:
    """The label as the API takes it, with the sides as they were shown.

    Of a stored comparison the sides have their places, so there the choice is turned instead.
    """
    winner = CHOICES.get(choice)
    if winner is None:
        raise InvalidRequest("Choose A, B, a tie, or skip the pair.")
    kind, comparison_id, _ = pair.source
    if kind == "comparison":
        turned = {"a": "b", "b": "a"}.get(winner, winner) if swapped else winner
        return {"comparison_id": comparison_id, "winner": turned, "labeller": person}
    a, b = (pair.b, pair.a) if swapped else (pair.a, pair.b)
    return {
        "collection_slug": pair.collection,
        "scenario_slug": pair.scenario,
        "response_a": {"messages": a},
        "response_b": {"messages": b},
        "agent_role": pair.agent_role,
        "winner": winner,
        "labeller": person,
    }


def _progress(labels: Labels, person: str) -> Json:
    own = sum(person in said for said in labels.by_pair.values())
    others = [name for name, _ in labels.people() if name not in (person, GOLD)]
    return {
        "count": own,
        "people": labels.people(),
        "gold": labels.agreement(person, GOLD),
        "agreement": [(name, *labels.agreement(person, name)) for name in others[:8]],
    }


def _claims(visit: Visit) -> Claims:
    state = visit.request.app.state
    kept: Claims | None = getattr(state, _STATE, None)
    if kept is None:
        kept = Claims()
        setattr(state, _STATE, kept)
    return kept


def _place(visit: Visit, key: str) -> str:
    return f"{visit.lab.lab_id}/{key}"
