"""The tools of the Model Context Protocol: each stands for a call of the API, and calls the same services.

A tool takes what the call takes, with `idempotency_key` in place of the header. What the API would refuse is a result
that says so, with the same code and message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints
from pydantic_core import from_json

from reward_server.access import collection_for, scenario_for, visible_collections
from reward_server.api.body import validate
from reward_server.api.charged import evaluated, played
from reward_server.api.context import (
    MAX_IDEMPOTENCY_KEY_CHARACTERS,
    Body,
    Services,
    answer,
    usable_key,
    within,
)
from reward_server.api.errors import enveloped, status_of
from reward_server.api.routes.catalog import collection_in_short, scenario_in_full
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.errors import FieldProblem, InvalidRequest, LabsError
from reward_server.ids import IdPrefix, is_id
from trainer_client.wire import (
    MAX_CONTENT_CHARACTERS,
    CreateEpisodeRequest,
    EvaluateRequest,
    RequestModel,
    RewardConfig,
    SlugField,
    ToolCall,
    TurnRequest,
)

KEY = "idempotency_key"
_KEY_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_IDEMPOTENCY_KEY_CHARACTERS,
    "description": "Makes a retry safe: the same key and arguments return the stored result for 24 hours.",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool, with which request."""

    request: Request
    services: Services
    lab: Lab


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: the body of the API's answer, or of its error."""

    body: Body
    failed: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Caller, Any, str | None], Awaitable[Body]]
    scopes: tuple[Scope, ...] = ANY
    stores: bool = False
    """True if it may store conversations, which takes room, and may be called again with a key."""
    reads_only: bool = False

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        schema = self.arguments.model_json_schema()
        return {**schema, "properties": {**schema["properties"], KEY: _KEY_SCHEMA}} if self.stores else schema

    def is_for(self, lab: Lab) -> bool:
        """True if the lab's key may call it."""
        return not lab.scopes.isdisjoint(self.scopes)


async def called(caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
    """Call a tool; raises what a client can do nothing about."""
    trace = caller.request.state.trace
    trace["tool"] = tool.name
    try:
        caller.lab.require(*tool.scopes)
        given = dict(arguments)
        key = _key_of(given) if tool.stores else None
        wanted = validate(tool.arguments, given)
        if tool.stores:
            await caller.services.storage.require_room(caller.lab)
        return Outcome(answer(caller.request, await tool.run(caller, wanted, key)))
    except LabsError as error:
        if status_of(error) == 500:
            raise
        trace["code"] = error.code
        return Outcome(from_json(enveloped(caller.request.state.request_id, error)), failed=True)


def _key_of(arguments: dict[str, Any]) -> str | None:
    """The key of a call that may be made again, taken out of its arguments."""
    key = arguments.pop(KEY, None)
    if key is not None and not isinstance(key, str):
        raise InvalidRequest(errors=[FieldProblem((KEY,), "Must be text.")])
    return usable_key(key, KEY)


# --- scenarios ---------------------------------------------------------------------------------------


class ListScenarios(RequestModel):
    """Of `list_scenarios`: all collections, or one."""

    collection_slug: SlugField | None = None


class GetScenario(RequestModel):
    """Of `get_scenario`."""

    collection_slug: SlugField
    scenario_slug: SlugField


async def _list_scenarios(caller: Caller, wanted: ListScenarios, _: str | None) -> Body:
    lab, catalog = caller.lab, caller.services.catalog
    named = wanted.collection_slug
    found = visible_collections(lab, catalog) if named is None else [collection_for(lab, catalog, named)]
    return {"collections": [collection_in_short(each) for each in found]}


async def _get_scenario(caller: Caller, wanted: GetScenario, _: str | None) -> Body:
    found = scenario_for(caller.lab, caller.services.catalog, wanted.collection_slug, wanted.scenario_slug)
    return scenario_in_full(found)


# --- episodes ----------------------------------------------------------------------------------------


class NamedEpisode(RequestModel):
    """Of `end_episode`."""

    episode_id: Annotated[str, StringConstraints(max_length=64)]


class PlayTurn(NamedEpisode):
    """Of `play_turn`: what the agent says and does."""

    text: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)] = ""
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None
    terminate: Annotated[bool, Field(strict=True)] = False
    reward_config: RewardConfig | None = None


async def _start_episode(caller: Caller, wanted: CreateEpisodeRequest, key: str | None) -> Body:
    services = caller.services
    made = await within(services.settings.request_deadline_s, services.episodes.create(caller.lab, wanted, key))
    _note(caller, made["episode_id"])
    return made


async def _play_turn(caller: Caller, wanted: PlayTurn, key: str | None) -> Body:
    _note(caller, wanted.episode_id)
    said = wanted.model_dump(include={"text", "tool_calls"}, exclude_unset=True)
    message = {"role": "assistant", "content": said.pop("text", ""), **said}
    kept = wanted.model_dump(include={"terminate", "reward_config"}, exclude_unset=True)
    turn = validate(TurnRequest, {"messages": [message], **kept})
    return await played(caller.services, caller.lab, wanted.episode_id, turn, key)


async def _end_episode(caller: Caller, wanted: NamedEpisode, _: str | None) -> Body:
    _note(caller, wanted.episode_id)
    return await caller.services.episodes.end(caller.lab, wanted.episode_id)


def _note(caller: Caller, episode_id: str) -> None:
    """Of the episode, in the trace of the request; a client may write anything."""
    if is_id(episode_id, IdPrefix.EPISODE):
        caller.request.state.trace["episode"] = episode_id


# --- evaluation --------------------------------------------------------------------------------------


async def _evaluate(caller: Caller, wanted: EvaluateRequest, key: str | None) -> Body:
    return await evaluated(caller.request, caller.lab, wanted, key)


_ALL = (
    Tool(
        "list_scenarios",
        "Lists the collections and scenarios that this key may use.",
        ListScenarios,
        _list_scenarios,
        reads_only=True,
    ),
    Tool(
        "get_scenario",
        "Returns the card of a scenario, its personas and the tools that an agent may call in it.",
        GetScenario,
        _get_scenario,
        reads_only=True,
    ),
    Tool(
        "start_episode",
        "Begins an episode with the persona of a scenario, who speaks first. Returns `episode_id` and what was said.",
        CreateEpisodeRequest,
        _start_episode,
        scopes=(Scope.TRAIN,),
        stores=True,
    ),
    Tool(
        "play_turn",
        "Says something to the persona of an episode (`text`), calls tools of the scenario (`tool_calls`), or both. "
        "Returns the persona's answer and the reward of the conversation so far; `terminate` makes it the last turn.",
        PlayTurn,
        _play_turn,
        scopes=(Scope.TRAIN,),
        stores=True,
    ),
    Tool(
        "end_episode",
        "Ends an episode that goes on, and returns its public transcript.",
        NamedEpisode,
        _end_episode,
        scopes=(Scope.TRAIN,),
    ),
    Tool(
        "evaluate",
        "Scores a finished conversation of a scenario; messages of the agent have the role `assistant`.",
        EvaluateRequest,
        _evaluate,
        scopes=(Scope.SCORE,),
        stores=True,
    ),
)
TOOLS = {tool.name: tool for tool in _ALL}
