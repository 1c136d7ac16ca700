"""vLLM and SGLang: POST /classify and POST /v1/embeddings, as verl asks a served reward model.

The model is `judge:collection/scenario`, whose number is that of /evaluate, or `reward_model:collection/scenario`, the
learned model that serves this lab. The input is the conversation as JSON text, in which no reply can pass for a line
of the persona: text of a chat template does not tell them apart. So the client's reward tokenizer gets the chat
template `{{ messages | tojson }}`. The reward is the last (and only) probability, or the last number of the embedding.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import ConfigDict, Field

from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATIONS, JsonBody, read_json, validate
from reward_server.api.context import Body, IdempotencyKey, answer, services_of
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.compat import examples
from reward_server.compat.openai import JUDGE
from reward_server.compat.scoring import all_scored
from reward_server.compat.target import heard_message
from reward_server.errors import FieldProblem, InvalidRequest
from trainer_client.wire import (
    MAX_BATCH_ITEMS,
    Composite,
    CompositePart,
    EvaluateRequest,
    RequestModel,
    ResponseModel,
    Reward,
    RewardConfig,
)
from trainer_client.wire.base import Messages

router = Router(tags=["doors"])
LEARNED = "reward_model"
HOW = f"Must be `{JUDGE}:collection/scenario` or `{LEARNED}:collection/scenario`."
ALONE = RewardConfig(composite=Composite(combine="weighted_sum", parts=[CompositePart(judge=LEARNED)]))


class PooledText(RequestModel):
    """A request of verl. Other fields, such as `use_activation`, have no meaning here."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1, max_length=300)]
    input: str | Annotated[list[str], Field(max_length=MAX_BATCH_ITEMS)]
    """Each text is a JSON list of messages, with the agent as `assistant`."""


class _Conversation(RequestModel):
    messages: Annotated[Messages, Field(min_length=1, max_length=512)]


class Class(ResponseModel):
    """The reward of one input, as the probability of the only class."""

    index: int
    label: Literal["reward"]
    probs: list[Reward]
    num_classes: Literal[1]


class Classified(ResponseModel):
    """Answer of /classify, in the order of the inputs."""

    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[Class]
    usage: dict[str, int]
    request_id: str


class Embedding(ResponseModel):
    """The reward of one input, as an embedding of one dimension."""

    index: int
    object: Literal["embedding"]
    embedding: list[Reward]


class Embedded(ResponseModel):
    """Answer of /v1/embeddings, in the order of the inputs."""

    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[Embedding]
    usage: dict[str, int]
    request_id: str


@router.post("/classify", response_model=Classified, responses=answers(examples.CLASSIFIED, 403, 404, 502))
async def vllm_classify(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[PooledText, JsonBody(CONVERSATIONS, example=examples.POOLED)],
    key: IdempotencyKey = None,
) -> Body:
    """Score conversations as clients of vLLM ask a reward model; all of a request or none."""
    rewards = await _rewards(request, lab, wanted, key)
    data = [{"index": i, "label": "reward", "probs": [each], "num_classes": 1} for i, each in enumerate(rewards)]
    return answer(request, _listed(request, "classify", wanted.model, data))


@router.post("/v1/embeddings", response_model=Embedded, responses=answers(examples.EMBEDDED, 403, 404, 502))
async def vllm_embeddings(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[PooledText, JsonBody(CONVERSATIONS, example=examples.POOLED)],
    key: IdempotencyKey = None,
) -> Body:
    """Score conversations as clients of SGLang ask a reward model; all of a request or none."""
    rewards = await _rewards(request, lab, wanted, key)
    data = [{"index": i, "object": "embedding", "embedding": [each]} for i, each in enumerate(rewards)]
    return answer(request, _listed(request, "embd", wanted.model, data))


async def _rewards(request: Request, lab: Lab, wanted: PooledText, key: str | None) -> list[float]:
    results = await all_scored(request, lab, requests_of(wanted), "input", key)
    return [result["reward"] for result in results]


def requests_of(asked: PooledText) -> list[EvaluateRequest]:
    """The conversations of a request.

    Raises:
        InvalidRequest: the model names no scenario, or an input is no JSON list of messages.
    """
    kind, _, name = asked.model.partition(":")
    collection, slash, scenario = name.partition("/")
    if kind not in (JUDGE, LEARNED) or not (collection and slash and scenario):
        raise InvalidRequest(errors=[FieldProblem(("model",), HOW)])
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    fields = {"collection_slug": collection, "scenario_slug": scenario}
    config = ALONE if kind == LEARNED else None
    return [
        validate(EvaluateRequest, {**fields, "messages": _conversation(text, i), "reward_config": config})
        for i, text in enumerate(texts)
    ]


def _conversation(text: str, i: int) -> Any:
    try:
        messages = read_json(text.encode())
        heard = [heard_message(each) for each in messages] if isinstance(messages, list) else messages
        return validate(_Conversation, {"messages": heard}).messages
    except InvalidRequest as error:
        # Where in the text is said, as for the body; the text itself is the input's.
        problems = [FieldProblem(("input", i, *each.loc), each.msg) for each in error.errors]
        raise InvalidRequest(errors=problems) from None


def _listed(request: Request, prefix: str, model: str, data: list[Body]) -> Body:
    return {
        "id": f"{prefix}-{request.state.request_id}",
        "object": "list",
        "created": int(services_of(request).clock.now().timestamp()),
        "model": model,
        "data": data,
        "usage": {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0},
    }
