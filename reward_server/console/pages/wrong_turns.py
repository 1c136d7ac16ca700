"""Author: mark a turn of a transcript as understood wrongly, and say what it asks and promises."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from reward_server.api.body import validate
from reward_server.api.routes import episodes as api
from reward_server.console import conversation, labelled_turns, view
from reward_server.console.conversation import ConversationView, TurnView
from reward_server.console.labelled_turns import Place
from reward_server.console.pages.own_scenarios import AUTHOR
from reward_server.console.reasons import reasons_of
from reward_server.console.routing import Pages
from reward_server.console.scenario_files import folder_of
from reward_server.console.visit import Visit
from reward_server.episodes.machine import agent_role
from reward_server.errors import Forbidden, InvalidRequest, NotFound
from scenarios.turns import KINDS
from trainer_client.wire import PushRequest

pages = Pages()
Json = dict[str, Any]
NOT_ITS_AUTHOR = "Turns are labelled by the author of a scenario: in development mode, or of your lab's own scenarios."


@pages.read("/episodes/{episode_id}/turns/{number}/wrong", like=api.read_episode)
async def ask(visit: Visit, episode_id: str, number: str) -> Response:
    """The form on which an author says what a turn means."""
    body, talk, turn = await _turn(visit, episode_id, number)
    return await _shown(visit, body, talk, turn)


@pages.change("/episodes/{episode_id}/turns/{number}/wrong", like=api.read_episode)
async def label(visit: Visit, episode_id: str, number: str) -> Response:
    """Keep what an author says a turn means."""
    body, talk, turn = await _turn(visit, episode_id, number)
    facts, commitments = _names(visit, body)
    try:
        line = labelled_turns.line_of(visit.form, turn.agent, _before(talk, turn), facts, commitments)
    except InvalidRequest as error:
        return await _shown(visit, body, talk, turn, problem=error.errors[0].msg)
    collection, scenario = body["collection_slug"], body["scenario_slug"]
    place = await labelled_turns.place_of(visit, collection, scenario)
    if place is Place.OWN:
        return await _in_own(visit, collection, scenario, line)
    if place is Place.DISK:
        return await _on_disk(visit, collection, scenario, line)
    headers = {"Content-Disposition": f'attachment; filename="{labelled_turns.name_of(scenario)}"'}
    return Response(f"{line}\n", media_type="application/x-ndjson", headers=headers)


async def _in_own(visit: Visit, collection: str, scenario: str, line: str) -> Response:
    own, name = visit.services.own_scenarios, labelled_turns.name_of(scenario)
    pulled = await own.pull(visit.lab, collection, None)
    files = {**pulled["files"], name: labelled_turns.with_line(pulled["files"].get(name, ""), line)}
    slug = collection.partition("@")[0]
    made = await own.push(visit.lab, validate(PushRequest, {"collection": slug, "files": files}))
    job = f"&job={made['job_id']}" if "job_id" in made else ""
    return view.sent(visit.request, f"{AUTHOR}/own/{slug}?file={name}{job}")


async def _on_disk(visit: Visit, collection: str, scenario: str, line: str) -> Response:
    folder, name = folder_of(visit), labelled_turns.name_of(scenario)
    assert folder is not None
    await folder.append(collection, name, line)
    return view.sent(visit.request, f"{AUTHOR}/files/{collection}?file={name}&saved=true")


async def _turn(visit: Visit, episode_id: str, number: str) -> tuple[Json, ConversationView, TurnView]:
    """The episode and the turn of it that is meant.

    Raises:
        Forbidden: who asks is not the author of the scenario.
        NotFound: there is no such turn, or nothing was said in it.
    """
    body = await visit.services.episodes.get(visit.lab, episode_id)
    if not visit.wrote(body["collection_slug"]):
        raise Forbidden(NOT_ITS_AUTHOR)
    talk = await conversation.of_episode(visit, body)
    turn = next((each for each in talk.turns if str(each.number) == number and each.agent), None)
    if turn is None:
        raise NotFound("There is no such turn.")
    return body, talk, turn


def _before(talk: ConversationView, turn: TurnView) -> str:
    """What the persona said last before a turn."""
    return (talk.turns[turn.number - 2].persona or "") if turn.number > 1 else talk.opening


def _names(visit: Visit, body: Json) -> tuple[list[str], list[str]]:
    half = visit.services.insights.private_half(body["collection_slug"], body["scenario_slug"])
    return [fact.id for facts in half.facts.values() for fact in facts], [name for name, _ in half.commitments]


async def _shown(visit: Visit, body: Json, talk: ConversationView, turn: TurnView, *, problem: str = "") -> Response:
    collection, scenario = body["collection_slug"], body["scenario_slug"]
    spoken = body["messages"]
    why = await reasons_of(visit, body, spoken, agent_role(spoken[0]["role"]), None)
    return view.page(
        visit,
        "wrong_turn.html",
        status=400 if problem else 200,
        episode=body,
        turn=turn,
        before=_before(talk, turn),
        heard=why.insight.turns.get(turn.number) if why.insight else None,
        half=visit.services.insights.private_half(collection, scenario),
        kinds=sorted(KINDS - {"near_commit"}),
        given=visit.form,
        place=(await labelled_turns.place_of(visit, collection, scenario)).value,
        file=labelled_turns.name_of(scenario),
        problem=problem,
    )
