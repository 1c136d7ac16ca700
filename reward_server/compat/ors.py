"""Open Reward Standard (ORS): environments at /compat/ors, for openreward, ors-sdk, TRL's `OpenRewardSpec` and others.

A task is a scenario with a seed (`ors_tasks`), a tool call is a turn (`ors_tools`), and its answer is a stream
(`ors_stream`). Some clients add up the rewards of the calls and others take the last one, so only the call that ends
the conversation has one; what could not be scored is the event `error`.

No session is kept. The id of a session and the lab that asks give the id of its episode, and the id of a call is its
`Idempotency-Key`, so every replica serves every session, and nobody else's key finds it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import Header, Path, Request, Response
from pydantic_core import to_json

from reward_server.access import scenario_for
from reward_server.api.access import for_keys
from reward_server.api.answers import Events, answers, events
from reward_server.api.body import CONVERSATION, JsonBody
from reward_server.api.context import (
    API_PREFIX,
    ON_LEAVING,
    SMALL_BODY,
    Body,
    Services,
    answer,
    services_of,
    within,
)
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.compat import examples, ors_wire
from reward_server.compat.ors_paths import deployment_of
from reward_server.compat.ors_stream import Event, ended, followed, told
from reward_server.compat.ors_tasks import ANY as ANY_ENVIRONMENT
from reward_server.compat.ors_tasks import SPLITS, environment_of, names_for
from reward_server.compat.ors_tools import TERMINAL, UnplayableCall, outcome_of, text_block, tools_of, turn_of
from reward_server.errors import (
    EpisodeComplete,
    EpisodeExists,
    FieldProblem,
    IdempotencyMismatch,
    InvalidRequest,
    NotFound,
)
from reward_server.ids import IdPrefix, derived_id, is_id, new_id
from reward_server.transcripts.weight import weight
from scenarios.library import PublicScenario
from trainer_client.wire import CreateEpisodeRequest, EpisodeConfig, TurnRequest

PATH = f"{API_PREFIX}/compat/ors"
router = Router(prefix=PATH, tags=["doors"])
Named = Annotated[str, Path(description="`collection` or `collection/scenario`; `env` is the first collection.")]
SessionId = Annotated[str | None, Header(alias="X-Session-ID", description="`sess_…`, from `create_session`.")]
_NO_BODY = (400, 408, 413)
"""Statuses of calls whose body is not read, but has to be small all the same."""


# --- environments and tasks --------------------------------------------------------------------------


@router.get("/health", response_model=ors_wire.Status, responses=answers(examples.ORS_OK))
async def ors_health(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """That the server answers this key."""
    services_of(request)
    return answer(request, {"status": "ok"})


@router.get(
    "/list_environments", response_model=ors_wire.EnvironmentNames, responses=answers(examples.ORS_ENVIRONMENTS)
)
async def ors_list_environments(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> list[str]:
    """The environments of this key: collections, and single scenarios."""
    return names_for(lab, services_of(request).catalog)


@router.get(
    "/{environment:path}/splits", response_model=ors_wire.Splits, responses=answers(examples.ORS_SPLITS, 403, 404)
)
async def ors_splits(request: Request, lab: Annotated[Lab, for_keys(*ANY)], environment: Named) -> list[Body]:
    """The splits: ranges of seeds that never meet."""
    environment_of(lab, services_of(request).catalog, environment)
    return [{"name": name, "type": name} for name in SPLITS]


@router.get("/{environment:path}/tools", response_model=ors_wire.Tools, responses=answers(examples.ORS_TOOLS, 403, 404))
async def ors_tools(request: Request, lab: Annotated[Lab, for_keys(*ANY)], environment: Named) -> Body:
    """The tools that all tasks of the environment have."""
    catalog = services_of(request).catalog
    found = environment_of(lab, catalog, environment)
    alone = next(iter(found.scenarios)) if len(found.scenarios) == 1 else None
    return answer(request, _tools(scenario_for(lab, catalog, found.collection, alone) if alone else None))


@router.post(
    "/{environment:path}/num_tasks", response_model=ors_wire.TaskCount, responses=answers(examples.ORS_COUNT, 403, 404)
)
async def ors_num_tasks(
    request: Request,
    lab: Annotated[Lab, for_keys(*ANY)],
    environment: Named,
    call: Annotated[ors_wire.SplitCall, JsonBody(example=examples.ORS_SPLIT)],
) -> Body:
    """Count the tasks of a split."""
    found = environment_of(lab, services_of(request).catalog, environment)
    return answer(request, {"num_tasks": found.count(call.split)})


@router.post(
    "/{environment:path}/tasks", response_model=ors_wire.SomeTasks, responses=answers(examples.ORS_SOME_TASKS, 403, 404)
)
async def ors_tasks(
    request: Request,
    lab: Annotated[Lab, for_keys(*ANY)],
    environment: Named,
    call: Annotated[ors_wire.SplitCall, JsonBody(example=examples.ORS_SPLIT)],
) -> Body:
    """All tasks of a split."""
    found = environment_of(lab, services_of(request).catalog, environment)
    return answer(request, {"tasks": found.tasks(call.split), "env_name": found.name})


@router.post(
    "/{environment:path}/task", response_model=ors_wire.OneTask, responses=answers(examples.ORS_ONE_TASK, 403, 404)
)
async def ors_task(
    request: Request,
    lab: Annotated[Lab, for_keys(*ANY)],
    environment: Named,
    call: Annotated[ors_wire.TaskCall, JsonBody(example=examples.ORS_INDEX)],
) -> Body:
    """One task of a split."""
    found = environment_of(lab, services_of(request).catalog, environment)
    return answer(request, {"task": found.task(call.split, call.index), "env_name": found.name})


@router.post(
    "/{environment:path}/task_range",
    response_model=ors_wire.SomeTasks,
    responses=answers(examples.ORS_SOME_TASKS, 403, 404),
)
async def ors_task_range(
    request: Request,
    lab: Annotated[Lab, for_keys(*ANY)],
    environment: Named,
    call: Annotated[ors_wire.RangeCall, JsonBody(example=examples.ORS_RANGE)],
) -> Body:
    """Some tasks of a split."""
    found = environment_of(lab, services_of(request).catalog, environment)
    return answer(request, {"tasks": found.tasks(call.split, call.start, call.stop), "env_name": found.name})


# --- sessions ----------------------------------------------------------------------------------------


@router.post(
    "/create_session",
    response_model=ors_wire.SessionReply,
    response_class=Events,
    responses=events(("task_id", "end"), *_NO_BODY),
    dependencies=[SMALL_BODY],
)
async def ors_create_session(request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)]) -> Response:
    """An id for a session, as the data of the event `task_id`. Nothing is stored yet."""
    return told(Event("task_id", new_id(IdPrefix.SESSION)), Event("end", ""))


@router.post(
    "/create", response_model=ors_wire.SessionReply, responses=answers(examples.ORS_SESSION, 403, 404, 409, 502)
)
async def ors_create(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    call: Annotated[ors_wire.CreateCall, JsonBody(example=examples.ORS_CREATE)],
    x_session_id: SessionId = None,
) -> Body:
    """Begin the episode of a session; sent again, it changes nothing."""
    services = services_of(request)
    session = _session(x_session_id)
    task = _task_of(request, lab, call)
    config = EpisodeConfig(seed=task.seed, max_turns=task.max_turns, persona_slug=task.persona_slug, split=task.split)
    wanted = CreateEpisodeRequest(collection_slug=task.collection_slug, scenario_slug=task.scenario_slug, config=config)
    episode = _episode(lab, session)
    work = services.episodes.create(lab, wanted, _key("create", episode), episode_id=episode)
    try:
        await within(services.settings.request_deadline_s, work)
    except IdempotencyMismatch:
        raise EpisodeExists from None
    request.state.trace["episode"] = episode
    return answer(request, {"sid": session})


@router.post(
    "/ping",
    response_model=ors_wire.Status,
    responses=answers(examples.ORS_OK, *_NO_BODY, 403, 404),
    dependencies=[SMALL_BODY],
)
async def ors_ping(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], x_session_id: SessionId = None
) -> Body:
    """That the session is there; clients ask every 10 s."""
    await services_of(request).episodes.get(lab, _episode(lab, _session(x_session_id)))
    return answer(request, {"status": "ok"})


@router.post(
    "/delete",
    response_model=ors_wire.SessionReply,
    responses=answers(examples.ORS_SESSION, *_NO_BODY, 403, 409),
    dependencies=[SMALL_BODY],
)
async def ors_delete(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], x_session_id: SessionId = None
) -> Body:
    """End the episode of a session if it goes on, as a client does that leaves."""
    session = _session(x_session_id)
    # Whoever leaves need not have begun.
    with suppress(NotFound):
        await services_of(request).episodes.end(lab, _episode(lab, session))
    return answer(request, {"sid": session})


@router.post(
    "/delete_session",
    response_model=ors_wire.SessionReply,
    responses=answers(examples.ORS_SESSION, *_NO_BODY),
    dependencies=[SMALL_BODY],
)
async def ors_delete_session(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], x_session_id: SessionId = None
) -> Body:
    """Say that a session id is no longer needed, of which there is nothing to clear away."""
    return answer(request, {"sid": _session(x_session_id)})


@router.get(
    "/{environment:path}/prompt", response_model=ors_wire.Prompt, responses=answers(examples.ORS_PROMPT, 400, 403, 404)
)
async def ors_prompt(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], environment: Named, x_session_id: SessionId = None
) -> list[Body]:
    """The public card of the scenario, and what the persona says first."""
    episode, scenario = await _played(services_of(request), lab, _session(x_session_id), environment)
    about = (
        f"{scenario.card.description}\n\n"
        "Talk to the person with the tool `reply`; what you write without a tool is not heard. The tool `finish` says "
        f"your last message and ends the conversation, which has at most {episode['max_turns']} messages of yours."
    )
    opening = f"The person says:\n{episode['messages'][0]['content']}"
    return [text_block(about), text_block(opening)]


@router.get(
    "/{environment:path}/task_tools",
    response_model=ors_wire.Tools,
    responses=answers(examples.ORS_TOOLS, 400, 403, 404),
)
async def ors_task_tools(
    request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)], environment: Named, x_session_id: SessionId = None
) -> Body:
    """The tools of the task: those of all tasks, and those of its scenario."""
    _, scenario = await _played(services_of(request), lab, _session(x_session_id), environment)
    return answer(request, _tools(scenario))


@router.post(
    "/{environment:path}/call",
    response_model=ors_wire.Outcome,
    response_class=Events,
    responses=events(("end", "chunk", "task_id", "error"), 403, 404, example=examples.ORS_OUTCOME),
)
async def ors_call(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    environment: Named,
    call: Annotated[ors_wire.Call, JsonBody(CONVERSATION, example=examples.ORS_CALL)],
    x_session_id: SessionId = None,
) -> Response:
    """Play a turn: the event `task_id` names the call, and its outcome is the data of all `chunk` and of `end`."""
    services = services_of(request)
    episode, scenario = await _played(services, lab, _session(x_session_id), environment)
    call_id = new_id(IdPrefix.CALL) if call.task_id is None else call.task_id
    if not is_id(call_id, IdPrefix.CALL):
        return told(Event("error", "There is no such task_id."))
    try:
        turn = turn_of(call, _shown(scenario))
    except UnplayableCall as refused:
        return told(Event("task_id", call_id), Event("end", to_json(refused.outcome()).decode()))
    # Charged here, before the stream: clients try again what is refused by a status.
    await services.compute.charge(lab, weight(turn.messages[0]), turns=1)
    work = partial(_turn, services, lab, episode["episode_id"], turn, call_id)
    ending = asyncio.create_task(ended(work, request.state.request_id))
    leaving = request.scope["state"].pop(ON_LEAVING, None)
    if leaving is not None:
        # The lab's place is taken until the turn is played, not only until its stream begins.
        ending.add_done_callback(lambda _: leaving())
    return followed(call_id, ending)


async def _turn(services: Services, lab: Lab, episode: str, turn: TurnRequest, call_id: str) -> Body:
    """Answer a call; its turn is played once, however often it is asked for."""
    try:
        played = await services.episodes.turn(lab, episode, turn, _key("call", episode, call_id))
    except EpisodeComplete as error:
        return UnplayableCall("episode_finished", error.message).outcome()
    return outcome_of(played, episode)


async def _played(services: Services, lab: Lab, session: str, environment: str) -> tuple[Body, PublicScenario]:
    """The episode of a session, and its scenario.

    Raises:
        NotFound: there is none, or it is of another environment than the call.
    """
    episode = await services.episodes.get(lab, _episode(lab, session))
    collection, scenario = episode["collection_slug"], episode["scenario_slug"]
    if environment != ANY_ENVIRONMENT:
        found = environment_of(lab, services.catalog, environment)
        if collection != found.collection or scenario not in found.scenarios:
            raise NotFound(
                f"This session plays {collection}/{scenario}, which is not in this environment. ors-sdk names no "
                "environment beside split and index: open the session with a task."
            )
    return episode, scenario_for(lab, services.catalog, collection, scenario)


def _task_of(request: Request, lab: Lab, call: ors_wire.CreateCall) -> ors_wire.Task:
    """The task that a session shall play, given as it is or by its place in a split."""
    if (call.task_spec is None) == (call.split is None) or (call.split is None) != (call.index is None):
        raise InvalidRequest("Give either task_spec, or split and index.")
    if call.task_spec is not None:
        return call.task_spec
    name = call.env_name or deployment_of(request.headers) or ANY_ENVIRONMENT
    found = environment_of(lab, services_of(request).catalog, name)
    return ors_wire.Task(**found.task(call.split or "", call.index or 0))


def _tools(scenario: PublicScenario | None) -> Body:
    return {"tools": tools_of(_shown(scenario) if scenario else ()), "terminal_tool": TERMINAL}


def _shown(scenario: PublicScenario) -> list[Body]:
    return [tool.shown() for tool in scenario.card.tools]


def _session(given: str | None) -> str:
    if given is None or not is_id(given, IdPrefix.SESSION):
        problem = FieldProblem(("header", "X-Session-ID"), "Must be the id that `create_session` gave.")
        raise InvalidRequest(errors=[problem])
    return given


def _episode(lab: Lab, session: str) -> str:
    """The id of the episode of a session: another lab's key that names the session finds another one, or none."""
    return derived_id(IdPrefix.EPISODE, lab.lab_id, session)


def _key(*parts: str) -> str:
    """An `Idempotency-Key` for a call of this door."""
    return "/".join(("ors", *parts))
