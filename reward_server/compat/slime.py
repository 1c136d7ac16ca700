"""slime and miles: POST /compat/slime, for `--rm-type remote_rm --rm-url`.

`{"prompt", "response", "label"}` in. A JSON number comes back, or with `?format=dict` an object for `--reward-key
reward`. slime asks again after an error, ten times, and then stops the run with it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field, RootModel

from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATION, JsonBody
from reward_server.api.charged import evaluated
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.compat import examples
from reward_server.compat.target import Label, TargetLabel, target_of, transcript, without_special_tokens
from trainer_client.wire import EvaluateRequest, Message, RequestModel, ResponseModel, Reward

router = Router(prefix=f"{API_PREFIX}/compat", tags=["doors"])


class SlimeSample(RequestModel):
    """A sample of slime. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    prompt: Annotated[list[Message], Field(max_length=511)] | str = ""
    """Messages are the conversation before the reply, unless the label has them; text is not read."""
    response: str
    label: Label


class SlimeReward(ResponseModel):
    """The reward with its receipt."""

    reward: Reward
    scores: dict[str, Reward] | None = None
    evaluation_id: str
    scoring_version: str
    request_id: str


class SlimeReply(RootModel[Reward | SlimeReward]):
    """A number, or an object where `format` asks for it."""


class SlimeQuery(BaseModel):
    """Query of the call."""

    format: Literal["number", "dict"] = "number"


@router.post("/slime", response_model=SlimeReply, responses=answers(examples.SLIME_RESPONSE, 403, 404, 502))
async def slime_reward(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    sample: Annotated[SlimeSample, JsonBody(CONVERSATION, example=examples.SLIME_REQUEST)],
    query: Annotated[SlimeQuery, Query()],
    key: IdempotencyKey = None,
) -> Body | float:
    """Score a reply as slime and miles ask for it."""
    target = _target(sample)
    wanted = EvaluateRequest(
        collection_slug=target.collection_slug,
        scenario_slug=target.scenario_slug,
        messages=transcript(target, without_special_tokens(sample.response), "response"),
        reward_config=target.reward_config,
    )
    result = await evaluated(request, lab, wanted, key)
    if query.format == "number":
        reward: float = result["reward"]
        return reward
    return answer(request, result)


def _target(sample: SlimeSample) -> TargetLabel:
    target = target_of(sample.label, "label")
    if target.messages or isinstance(sample.prompt, str):
        return target
    before: list[Message] = sample.prompt
    return target.model_copy(update={"messages": before})
