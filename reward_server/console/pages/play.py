"""Try it: pick a scenario, read the briefing that an agent would get, talk to the persona, get the receipt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Response

from reward_server.access import scenario_for, visible_collections
from reward_server.api.body import validate
from reward_server.api.context import within
from reward_server.api.routes import episodes as api
from reward_server.console import conversation, snippets, tool_forms, view
from reward_server.console.forms import Form
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.episodes.machine import agent_role
from reward_server.ids import new_token
from reward_server.transcripts.weight import weight
from trainer_client.wire import CreateEpisodeRequest, TurnRequest

pages = Pages()
Json = dict[str, Any]


@pages.read("", like=api.create_episode)
async def choose(visit: Visit) -> Response:
    """All scenarios of the key, as cards."""
    collections = list(visible_collections(visit.lab, visit.services.catalog))
    return view.page(visit, "scenarios.html", collections=collections)


@pages.read("/scenarios/{collection}/{scenario}", like=api.create_episode)
async def briefing(visit: Visit, collection: str, scenario: str) -> Response:
    """The page on which an agent is briefed for a scenario, and how to begin."""
    found = scenario_for(visit.lab, visit.services.catalog, collection, scenario)
    return view.page(
        visit,
        "briefing.html",
        collection=visit.services.catalog.collections[collection].card,
        scenario=found,
        card=found.card,
        snippets=snippets.to_begin(place_of(visit, collection, scenario)),
    )


@pages.change("/scenarios/{collection}/{scenario}", like=api.create_episode)
async def begin(visit: Visit, collection: str, scenario: str) -> Response:
    """Begin an episode."""
    form = visit.form
    chosen = {
        "seed": form.whole("seed"),
        "persona_slug": form.line("persona") or None,
        "max_turns": form.whole("max_turns"),
        "split": form.line("split") or None,
        "metadata": {"from": "console"},
    }
    config = {name: value for name, value in chosen.items() if value is not None}
    wanted = validate(
        CreateEpisodeRequest, {"collection_slug": collection, "scenario_slug": scenario, "config": config}
    )
    work = visit.services.episodes.create(visit.lab, wanted, None)
    body = await within(visit.services.settings.request_deadline_s, work)
    return view.sent(visit.request, f"{ROOT}/play/{body['episode_id']}")


@pages.read("/play/{episode_id}", like=api.create_episode)
async def play(visit: Visit, episode_id: str) -> Response:
    """The conversation so far, and what it is worth."""
    return await _shown(visit, await visit.services.episodes.get(visit.lab, episode_id))


@pages.change("/play/{episode_id}/turns", like=api.take_turn)
async def say(visit: Visit, episode_id: str) -> Response:
    """Play a turn."""
    services, lab = visit.services, visit.lab
    before = await services.episodes.get(lab, episode_id)
    wanted = _turn_of(visit.form, _tools(visit, before), _role(visit, before))
    await services.compute.charge(lab, weight(wanted.messages[-1]), turns=1)
    work = services.episodes.turn(lab, episode_id, wanted, _once(visit.form, episode_id))
    await within(services.settings.request_deadline_s, work)
    return await _after(visit, episode_id)


@pages.change("/play/{episode_id}/end", like=api.end_episode)
async def end(visit: Visit, episode_id: str) -> Response:
    """End the conversation."""
    await visit.services.episodes.end(visit.lab, episode_id)
    return await _after(visit, episode_id)


def place_of(visit: Visit, collection: str, scenario: str) -> snippets.SnippetTarget:
    """The scenario's place for code."""
    url = str(visit.request.base_url).rstrip("/")
    return snippets.SnippetTarget(url, collection, scenario, needs_key=not visit.is_open)


def episode_of_author(visit: Visit, body: Json) -> str:
    """The episode whose turns this visitor may label, as the author of its scenario; empty for others."""
    return str(body.get("episode_id", "")) if visit.wrote(body["collection_slug"]) else ""


async def _after(visit: Visit, episode_id: str) -> Response:
    """The conversation anew: the part of the page that changed, or all of it for a browser without scripts."""
    if not visit.is_partial:
        return view.sent(visit.request, f"{ROOT}/play/{episode_id}")
    return await _shown(visit, await visit.services.episodes.get(visit.lab, episode_id))


async def _shown(visit: Visit, body: Json) -> Response:
    found = scenario_for(visit.lab, visit.services.catalog, body["collection_slug"], body["scenario_slug"])
    return view.page(
        visit,
        "_play.html" if visit.is_partial else "play.html",
        episode=body,
        card=found.card,
        talk=await conversation.of_episode(visit, body),
        tools=[(tool, tool_forms.fields_of(tool)) for tool in found.card.tools],
        once=new_token(),
        wrong_of=episode_of_author(visit, body),
    )


def _tools(visit: Visit, body: Json) -> Sequence[tool_forms.ToolForm]:
    return scenario_for(visit.lab, visit.services.catalog, body["collection_slug"], body["scenario_slug"]).card.tools


def _role(visit: Visit, body: Json) -> str:
    """The role of the agent in an episode: the one that the opening does not have."""
    return agent_role(body["messages"][0]["role"])


def _turn_of(form: Form, tools: Sequence[tool_forms.ToolForm], role: str) -> TurnRequest:
    message: Json = {"role": role, "content": form.text("content").replace("\r\n", "\n")}
    called = next((tool for tool in tools if tool.id == form.line("tool")), None)
    if called is not None:
        message["tool_calls"] = [{"name": called.id, "input": tool_forms.input_of(called, form)}]
    return validate(TurnRequest, {"messages": [message]})


def _once(form: Form, episode_id: str) -> str | None:
    """A form that is sent twice plays one turn."""
    mark = form.line("once")
    return f"console/{episode_id}/{mark[:64]}" if mark.isascii() and mark.isalnum() else None
