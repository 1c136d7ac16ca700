"""OpenRLHF: POST /compat/openrlhf/get_reward, for `--reward.remote_url` (`--remote_rm_url` of older releases).

`{"query": [str], "prompts": [str], "labels": [label]}` in, `{"rewards", "scores", "extra_logs"}` out, lists of the
request's length. A query is prompt and reply, decoded with special tokens. OpenRLHF asks again after any status of 400
or more, five times, and then goes on without a reward: what was not scored reaches no gradient.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import ConfigDict, Field

from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.compat import examples
from reward_server.compat.scoring import all_scored
from reward_server.compat.target import Label, reply_after, target_of, transcript
from reward_server.errors import FieldProblem, InvalidRequest
from trainer_client.wire import MAX_BATCH_ITEMS, EvaluateRequest, RequestModel, ResponseModel, Reward

router = Router(prefix=f"{API_PREFIX}/compat", tags=["doors"])


class RewardQuery(RequestModel):
    """A request of OpenRLHF. Other fields, of other releases, are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    query: Annotated[list[str], Field(max_length=MAX_BATCH_ITEMS)]
    prompts: Annotated[list[str], Field(max_length=MAX_BATCH_ITEMS, default_factory=list)]
    """Without them a query is the reply alone."""
    labels: Annotated[list[Label], Field(max_length=MAX_BATCH_ITEMS)]


class RewardReply(ResponseModel):
    """The answer that OpenRLHF reads."""

    rewards: list[Reward]
    scores: list[Reward]
    """The same numbers: OpenRLHF filters groups by them."""
    extra_logs: dict[str, list[Reward]]
    """The dimensions that all conversations of the request have."""
    request_id: str


@router.post(
    "/openrlhf/get_reward", response_model=RewardReply, responses=answers(examples.OPENRLHF_RESPONSE, 403, 404, 502)
)
async def openrlhf_get_reward(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[RewardQuery, JsonBody(CONVERSATIONS, example=examples.OPENRLHF_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Score replies as OpenRLHF asks for it; all of a request or none."""
    results = await all_scored(request, lab, requests_of(wanted), "query", key)
    rewards = [result["reward"] for result in results]
    return answer(request, {"rewards": rewards, "scores": rewards, "extra_logs": _logs(results)})


def requests_of(body: RewardQuery) -> list[EvaluateRequest]:
    """The conversations of a request.

    Raises:
        InvalidRequest: lists of different lengths, a label that names no scenario, a query without its prompt.
    """
    n = len(body.query)
    prompts = body.prompts or [""] * n
    for name, found in (("prompts", prompts), ("labels", body.labels)):
        if len(found) != n:
            raise InvalidRequest(errors=[FieldProblem((name,), f"Must have {n} items, as `query` has.")])
    wanted = []
    for i, (query, prompt, label) in enumerate(zip(body.query, prompts, body.labels, strict=True)):
        target = target_of(label, "labels", i)
        messages = transcript(target, reply_after(prompt, query, "query", i), "query", i)
        wanted.append(
            EvaluateRequest(
                collection_slug=target.collection_slug,
                scenario_slug=target.scenario_slug,
                messages=messages,
                reward_config=target.reward_config,
            )
        )
    return wanted


def _logs(results: list[Body]) -> dict[str, list[float]]:
    found = [result.get("scores") or {} for result in results]
    shared = [name for name in (found[0] if found else ()) if all(name in scores for scores in found)]
    return {name: [scores[name] for scores in found] for name in shared}
