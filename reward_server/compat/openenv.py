"""OpenEnv: an environment at /compat/openenv, for `GenericEnvClient(base_url)` and what is built on it.

One socket is one session with one episode at a time. `reset` begins an episode, `step` is a turn. Clients add up the
rewards of the steps, so only the last step has one: the reward of the whole conversation; the others have null. A step
that could not be scored is an error, and may be sent again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response, WebSocket
from pydantic import ConfigDict, Field, JsonValue
from pydantic_core import to_json
from starlette.websockets import WebSocketDisconnect

from reward_server import __version__
from reward_server.api.body import CONVERSATION, off_the_loop, read_json, validate
from reward_server.api.context import API_PREFIX, Body, Caller, Services, address_of, answer, services_of, within
from reward_server.api.operation import Operation, operation
from reward_server.api.socket_access import Operator, admitted, knock, turn_away
from reward_server.compat import examples
from reward_server.coordination.scopes import ANY, Scope
from reward_server.errors import (
    ClientError,
    FieldProblem,
    InvalidRequest,
    LabsError,
    Overloaded,
    RateLimited,
    in_a_line,
)
from reward_server.ids import new_request_id
from reward_server.scoring.weight import weight
from reward_server.telemetry.logs import get_logger
from trainer_client.wire import (
    MAX_TURNS,
    CreateEpisodeRequest,
    EpisodeConfig,
    Message,
    RequestModel,
    ResponseModel,
    SlugField,
    ToolCall,
    TurnRequest,
)

PATH = f"{API_PREFIX}/compat/openenv"
router = APIRouter(prefix=PATH, tags=["doors"])
IDLE_S = 3600.0
"""A policy may think for long between two steps."""
WRITE_S = 20.0
KINDS = ("reset", "step", "state", "close")

log = get_logger(__name__)


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


class PersonaLine(ResponseModel):
    """What the agent sees."""

    message: str
    """What the persona said."""


class EpisodeState(ResponseModel):
    """Where the session is."""

    episode_id: str | None
    step_count: int


class Schemas(ResponseModel):
    """JSON schemas of the environment."""

    action: dict[str, Any]
    observation: dict[str, Any]
    state: dict[str, Any]
    request_id: str


class Metadata(ResponseModel):
    """What this environment is."""

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


@router.get("/schema")
@operation(Operation(Schemas, scopes=ANY, response_example=examples.OPENENV_SCHEMA))
async def openenv_schema(request: Request, lab: Caller) -> Response:
    """The JSON schemas of actions, observations and state."""
    observation, state = PersonaLine.model_json_schema(), EpisodeState.model_json_schema()
    return answer(request, {"action": ACTION, "observation": observation, "state": state})


@router.get("/metadata")
@operation(Operation(Metadata, scopes=ANY, response_example=examples.OPENENV_METADATA))
async def openenv_metadata(request: Request, lab: Caller) -> Response:
    """What this environment is."""
    about = "A persona to talk to, and a reward by a rubric that the agent never sees."
    return answer(request, {"name": "labs", "description": about, "version": __version__})


@router.get("/health")
@operation(Operation(Health, scopes=ANY, response_example=examples.OPENENV_HEALTH))
async def openenv_health(request: Request, lab: Caller) -> Response:
    """That the server answers this key."""
    services_of(request)
    return answer(request, {"status": "healthy"})


@router.websocket("/ws")
async def openenv_session(websocket: WebSocket) -> None:
    """Serve one session."""
    try:
        services = services_of(websocket)
        await knock(websocket, services, Scope.TRAIN)
    except LabsError as error:
        await turn_away(websocket, error)
        return
    await websocket.accept()
    services.metrics.sockets_open.inc()
    try:
        await _Session(websocket, services).serve()
    finally:
        services.metrics.sockets_open.dec()
        with suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close(1000)


@dataclass
class _Session:
    """One socket, whose messages are worked on one after the other."""

    websocket: WebSocket
    services: Services
    episode: str | None = None
    steps: int = 0

    async def serve(self) -> None:
        """Until the client leaves or closes, or says nothing for long."""
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            while True:
                async with asyncio.timeout(IDLE_S):
                    message = await self.websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                text: str | None = message.get("text")
                reply = await self._answered((message.get("bytes") or b"") if text is None else text.encode())
                if reply is None:
                    return
                async with asyncio.timeout(WRITE_S):
                    await self.websocket.send_text(to_json(reply).decode())

    async def _answered(self, data: bytes) -> Body | None:
        """The answer to a message; None for the last one. It leaves a line in the log, as a request does."""
        trace: dict[str, Any] = {}
        request_id = new_request_id()
        kind = "unknown"
        try:
            content = await off_the_loop(_message, data, CONVERSATION)
            kind = content["type"]
            if kind == "close":
                return None
            return {"type": "state" if kind == "state" else "observation", "data": await self._done(content, trace)}
        except LabsError as error:
            trace["code"] = error.code
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 (the boundary of a request)
            # The message of an unforeseen error may quote anything.
            log.error("operation_failed", request_id=request_id, error=type(error).__name__)  # noqa: TRY400
            return _refusal(LabsError())
        finally:
            log.info("operation", request_id=request_id, op=kind, address=address_of(self.websocket), **trace)

    async def _done(self, content: dict[str, Any], trace: dict[str, Any]) -> Body:
        async with admitted(self.websocket, self.services, trace) as caller:
            caller.lab.require(Scope.TRAIN)
            kind, data = content["type"], content.get("data", {})
            await caller.enter(stores=kind != "state")
            if kind == "state":
                return {"episode_id": self.episode, "step_count": self.steps}
            return await (self._reset(caller, data) if kind == "reset" else self._step(caller, data))

    async def _reset(self, caller: Operator, data: object) -> Body:
        reset = validate(Reset, data)
        config = EpisodeConfig(seed=reset.seed, max_turns=reset.max_turns)
        wanted = CreateEpisodeRequest(
            collection_slug=reset.collection_slug, scenario_slug=reset.scenario_slug, config=config
        )
        work = self.services.episodes.create(caller.lab, wanted, None)
        begun = await within(self.services.settings.request_deadline_s, work)
        self.episode, self.steps = begun["episode_id"], 0
        return _observation(begun["initial_observation"]["content"], None, done=False)

    async def _step(self, caller: Operator, data: object) -> Body:
        if self.episode is None:
            raise InvalidRequest("There is no episode yet: send a reset first.")
        action = validate(AgentTurn, data)
        said = action.message if isinstance(action.message, str) else to_json(action.message).decode()
        message = validate(Message, {"role": "assistant", "content": said, "tool_calls": action.tool_calls})
        await self.services.compute.charge(caller.lab, weight(message), turns=1)
        work = self.services.episodes.turn(caller.lab, self.episode, TurnRequest(messages=[message]), None)
        turn = await within(self.services.settings.request_deadline_s, work)
        self.steps = turn["turn"]
        done: bool = turn["episode_complete"]
        return _observation(turn["observation"]["content"], turn["reward"] if done else None, done=done)


def _observation(line: str, reward: float | None, *, done: bool) -> Body:
    return {"observation": {"message": line}, "reward": reward, "done": done}


def _message(data: bytes) -> dict[str, Any]:
    try:
        content = read_json(data)
    except InvalidRequest as error:
        raise _NotJson(error.message) from None
    if not isinstance(content, dict) or content.get("type") not in KINDS:
        raise _UnknownType(errors=[FieldProblem(("type",), f"Must be one of {', '.join(KINDS)}.")])
    return content


class _NotJson(InvalidRequest):
    """The message is not JSON."""


class _UnknownType(InvalidRequest):
    """The message is of no known type."""


def _refusal(error: LabsError) -> Body:
    """An error in OpenEnv's words."""
    codes: tuple[tuple[type[LabsError], str], ...] = (
        (_NotJson, "INVALID_JSON"),
        (_UnknownType, "UNKNOWN_TYPE"),
        (RateLimited, "CAPACITY_REACHED"),
        (Overloaded, "CAPACITY_REACHED"),
        (ClientError, "VALIDATION_ERROR"),
    )
    code = next((code for kind, code in codes if isinstance(error, kind)), "EXECUTION_ERROR")
    return {"type": "error", "data": {"message": in_a_line(error), "code": code, "labs_code": error.code}}
