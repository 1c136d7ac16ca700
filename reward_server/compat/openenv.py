"""OpenEnv: an environment at /compat/openenv, for `GenericEnvClient(base_url)` and what is built on it.

`reset` begins an episode, `step` is a turn. Clients add up the rewards of the steps, so only the last step has one: the
reward of the whole conversation; the others have null. Clients take null for 0 in that sum, so a step that could not
be scored is an error, and may be sent again. Sessions are sockets (`openenv_socket`); over HTTP a cookie holds the
episode.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import ConfigDict, Field, JsonValue
from pydantic_core import to_json

from reward_server import __version__
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATION, JsonBody, validate
from reward_server.api.charged import played
from reward_server.api.context import API_PREFIX, Body, Services, answer, services_of, within
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.compat import examples
from reward_server.compat.session import episode_of, remember
from reward_server.transcripts.spoken import of_a_rollout
from trainer_client.wire import (
    MAX_TURNS,
    CreateEpisodeRequest,
    EpisodeConfig,
    Message,
    RequestModel,
    ResponseModel,
    Reward,
    SlugField,
    ToolCall,
    TurnRequest,
)

PATH = f"{API_PREFIX}/compat/openenv"
router = Router(prefix=PATH, tags=["doors"])


class Reset(RequestModel):
    """`data` of a reset. What else a data set's row holds is ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    collection_slug: SlugField
    scenario_slug: SlugField
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=MAX_TURNS, strict=True)] | None = None


class AgentTurn(RequestModel):
    """What the agent says to the persona."""

    message: JsonValue
    """Text. Some clients read what the policy wrote as JSON first; other values are taken as they are written."""
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None


class StepCall(RequestModel):
    """A step over HTTP. Other fields, such as `timeout_s`, are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    action: AgentTurn


class PersonaLine(ResponseModel):
    """An observation of the agent."""

    message: str
    """What the persona said."""


class Observed(ResponseModel):
    """Answer to a reset or a step."""

    observation: PersonaLine
    reward: Reward | None
    """Of the whole conversation, with the last step; null before."""
    done: bool
    request_id: str


class EpisodeState(ResponseModel):
    """The state of the session."""

    episode_id: str | None
    step_count: int


class StateReply(EpisodeState):
    """The state of the session, over HTTP."""

    request_id: str


class Schemas(ResponseModel):
    """JSON schemas of the environment."""

    action: dict[str, Any]
    observation: dict[str, Any]
    state: dict[str, Any]
    request_id: str


class Metadata(ResponseModel):
    """The description of this environment."""

    name: str
    description: str
    version: str
    request_id: str


class Health(ResponseModel):
    """The server answers."""

    status: str
    request_id: str


ACTION = {
    "title": AgentTurn.__name__,
    "description": AgentTurn.__doc__,
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "input": {"type": "object"}},
                "required": ["name", "input"],
            },
        },
    },
    "required": ["message"],
}
"""With one required field, so that clients can wrap plain text; written by hand, since a message is only ever text."""


@router.get("/schema", response_model=Schemas, responses=answers(examples.OPENENV_SCHEMA))
async def openenv_schema(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """The JSON schemas of actions, observations and state."""
    observation, state = PersonaLine.model_json_schema(), EpisodeState.model_json_schema()
    return answer(request, {"action": ACTION, "observation": observation, "state": state})


@router.get("/metadata", response_model=Metadata, responses=answers(examples.OPENENV_METADATA))
async def openenv_metadata(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """Describe this environment."""
    about = "A persona to talk to, and a reward by a rubric that the agent never sees."
    return answer(request, {"name": "labs", "description": about, "version": __version__})


@router.get("/health", response_model=Health, responses=answers(examples.OPENENV_HEALTH))
async def openenv_health(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """That the server answers this key."""
    services_of(request)
    return answer(request, {"status": "healthy"})


@router.post("/reset", response_model=Observed, responses=answers(examples.OPENENV_BEGUN, 403, 404, 502))
async def openenv_reset(
    request: Request,
    response: Response,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    reset: Annotated[Reset, JsonBody(CONVERSATION, example=examples.OPENENV_RESET)],
) -> Body:
    """Begin an episode; a cookie names it to the steps."""
    episode, observed = await begun(services_of(request), lab, reset)
    remember(response, episode, f"{request.app.state.path_prefix}{PATH}")
    return answer(request, observed)


@router.post("/step", response_model=Observed, responses=answers(examples.OPENENV_STEPPED, 403, 404, 409, 502))
async def openenv_step(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    call: Annotated[StepCall, JsonBody(CONVERSATION, example=examples.OPENENV_STEP)],
) -> Body:
    """Say something to the persona."""
    _, observed = await stepped(services_of(request), lab, episode_of(request), call.action)
    return answer(request, observed)


@router.get("/state", response_model=StateReply, responses=answers(examples.OPENENV_STATE, 403, 404))
async def openenv_state(request: Request, lab: Annotated[Lab, for_keys(Scope.TRAIN)]) -> Body:
    """Return the state of the episode."""
    episode = await services_of(request).episodes.get(lab, episode_of(request))
    return answer(request, {"episode_id": episode["episode_id"], "step_count": episode["turn"]})


async def begun(services: Services, lab: Lab, reset: Reset) -> tuple[str, Body]:
    """The id of a new episode, and what is observed."""
    wanted = CreateEpisodeRequest(
        collection_slug=reset.collection_slug,
        scenario_slug=reset.scenario_slug,
        config=EpisodeConfig(seed=reset.seed, max_turns=reset.max_turns),
    )
    made = await within(services.settings.request_deadline_s, services.episodes.create(lab, wanted, None))
    return made["episode_id"], _observation(made["initial_observation"]["content"], None, done=False)


async def stepped(services: Services, lab: Lab, episode: str, action: AgentTurn) -> tuple[int, Body]:
    """Play a step; return how many there are now, and what is observed."""
    said = action.message if isinstance(action.message, str) else to_json(action.message).decode()
    message = validate(Message, {"role": "assistant", "content": of_a_rollout(said), "tool_calls": action.tool_calls})
    turn = await played(services, lab, episode, TurnRequest(messages=[message]), None)
    done: bool = turn["episode_complete"]
    return turn["turn"], _observation(turn["observation"]["content"], turn["reward"] if done else None, done=done)


def _observation(line: str, reward: float | None, *, done: bool) -> Body:
    return {"observation": {"message": line}, "reward": reward, "done": done}
