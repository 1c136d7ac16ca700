"""NeMo Gym: a resources server at /compat/nemo-gym, for `resources_url`.

`/seed_session` begins an episode and remembers it in a cookie; `/reply` is the policy's one tool, a turn with the
persona; `/verify` gives the rollout its reward. A rollout that never called the tool is scored as it stands: the input
messages and the outputs. NeMo Gym knows no answer without a reward, so what was not scored is an HTTP error.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import ConfigDict, Field, JsonValue

from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATION, JsonBody, validate
from reward_server.api.charged import evaluated, played
from reward_server.api.context import API_PREFIX, Body, answer, services_of, within
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.compat import examples
from reward_server.compat.session import COOKIE, episode_of, remember
from reward_server.compat.target import heard_message
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.transcripts.spoken import of_a_rollout
from trainer_client.wire import (
    CreateEpisodeRequest,
    EpisodeConfig,
    EvaluateRequest,
    Message,
    RequestModel,
    ResponseModel,
    Reward,
    SlugField,
    TurnRequest,
)

PATH = f"{API_PREFIX}/compat/nemo-gym"
router = Router(prefix=PATH, tags=["doors"])


class Row(RequestModel):
    """A row of the data set; what Labs does not know of it is the client's own."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    collection_slug: SlugField
    scenario_slug: SlugField
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None


class Seeded(ResponseModel):
    """The episode has begun."""

    observation: str
    """The persona's first line."""
    max_turns: int
    request_id: str


class ReplyCall(RequestModel):
    """The input of the tool."""

    message: str


class Replied(ResponseModel):
    """The output of the tool."""

    observation: str
    episode_complete: bool
    request_id: str


class Rollout(Row):
    """A rollout to verify: the row, and the parameters and the answer of the Responses API."""

    responses_create_params: dict[str, JsonValue]
    response: dict[str, JsonValue]


class Verified(ResponseModel):
    """The rollout with its reward, and the dimensions as numbers of their own."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any]
    response: dict[str, Any]
    reward: Reward
    reward_components: dict[str, Reward] | None = None
    """The dimensions, which all rollouts of a scenario have, for objectives that weigh them one by one (GDPO)."""
    scoring_version: str
    request_id: str


@router.post("/seed_session", response_model=Seeded, responses=answers(examples.NEMO_SEEDED, 403, 404, 502))
async def nemo_gym_seed_session(
    request: Request,
    response: Response,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    row: Annotated[Row, JsonBody(CONVERSATION, example=examples.NEMO_ROW)],
) -> Body:
    """Begin an episode for a rollout of NeMo Gym."""
    services = services_of(request)
    wanted = CreateEpisodeRequest(
        collection_slug=row.collection_slug,
        scenario_slug=row.scenario_slug,
        config=EpisodeConfig(seed=row.seed) if row.seed is not None else None,
    )
    begun = await within(services.settings.request_deadline_s, services.episodes.create(lab, wanted, None))
    remember(response, begun["episode_id"], f"{request.app.state.path_prefix}{PATH}")
    return answer(request, {"observation": begun["initial_observation"]["content"], "max_turns": begun["max_turns"]})


@router.post("/reply", response_model=Replied, responses=answers(examples.NEMO_REPLIED, 403, 404, 409, 502))
async def nemo_gym_reply(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    wanted: Annotated[ReplyCall, JsonBody(CONVERSATION, example=examples.NEMO_REPLY)],
) -> Body:
    """The tool of a rollout of NeMo Gym: say something to the persona."""
    message = Message(role="assistant", content=of_a_rollout(wanted.message))
    turn = await played(services_of(request), lab, episode_of(request), TurnRequest(messages=[message]), None)
    return answer(
        request, {"observation": turn["observation"]["content"], "episode_complete": turn["episode_complete"]}
    )


@router.post("/verify", response_model=Verified, responses=answers(examples.NEMO_VERIFIED, 403, 404, 502))
async def nemo_gym_verify(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN, Scope.SCORE)],
    rollout: Annotated[Rollout, JsonBody(CONVERSATION, example=examples.NEMO_ROLLOUT)],
) -> Body:
    """The reward of a rollout of NeMo Gym: that of its episode if it played one, else that of its messages."""
    result = await _of_the_episode(request, lab)
    if result is None:
        lab.require(Scope.SCORE)
        wanted = EvaluateRequest(
            collection_slug=rollout.collection_slug, scenario_slug=rollout.scenario_slug, messages=messages_of(rollout)
        )
        result = await evaluated(request, lab, wanted, None)
    numbers = {"reward": result["reward"], "scoring_version": result["scoring_version"]}
    if scores := result.get("scores"):
        numbers = {**scores, **numbers, "reward_components": scores}
    return answer(request, {**rollout.model_dump(exclude_unset=True), **numbers})


async def _of_the_episode(request: Request, lab: Lab) -> Body | None:
    """The last turn of the session's episode; None if the rollout never spoke in it."""
    if COOKIE not in request.cookies:
        return None
    lab.require(Scope.TRAIN)
    return await services_of(request).episodes.last_answer(lab, episode_of(request))


def messages_of(rollout: Rollout) -> list[Message]:
    """The conversation: the input, and what the policy put out.

    Raises:
        InvalidRequest: an item is no message, or nothing in it was said by the agent.
    """
    given = rollout.responses_create_params.get("input")
    before: JsonValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    outputs = rollout.response.get("output")
    found: list[Message] = []
    for place, items in ((("responses_create_params", "input"), before), (("response", "output"), outputs)):
        if not isinstance(items, list):
            raise InvalidRequest(errors=[FieldProblem(place, "Must be a list.")])
        for i, item in enumerate(items):
            try:
                found += _messages(item)
            except InvalidRequest as error:
                problems = [FieldProblem((*place, i, *each.loc), each.msg) for each in error.errors]
                raise InvalidRequest(errors=problems) from None
    if isinstance(outputs, list) and not any(message.role == "assistant" for message in found):
        # A policy that only thought, or put out nothing, has had its turn.
        found.append(Message(role="assistant", content=""))
    return found


def _messages(item: JsonValue) -> list[Message]:
    """An item of the Responses API as a message; reasoning is not said, so it is none."""
    if not isinstance(item, dict):
        raise InvalidRequest(errors=[FieldProblem((), "Must be an object.")])
    kind = item.get("type", "message")
    if kind == "reasoning":
        return []
    if kind == "function_call":
        call = {"function": {"name": item.get("name"), "arguments": item.get("arguments")}}
        return [validate(Message, {"role": "assistant", "content": "", "tool_calls": [call]})]
    if kind == "function_call_output":
        return [validate(Message, {"role": "tool", "content": item.get("output")})]
    role = "system" if item.get("role") == "developer" else item.get("role")
    return [validate(Message, heard_message({"role": role, "content": _text(item.get("content"))}))]


def _text(content: JsonValue) -> JsonValue:
    """`input_text` and `output_text` parts as the text parts of chat messages."""
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": "text"} if isinstance(part, dict) and str(part.get("type")).endswith("_text") else part
        for part in content
    ]
