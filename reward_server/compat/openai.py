"""OpenAI: POST /v1/chat/completions and GET /v1/models, for everything that takes a `base_url`.

Two kinds of models stand for each scenario. `persona:collection/scenario` is the person: the client's `user` messages
are what the agent says, and the completion is the answer. `judge:collection/scenario` is the rubric: `messages` are a
finished conversation with the agent as `assistant`, and the completion is a JSON object with the reward.

A persona remembers by episode. The answer names it in `labs.episode_id`; a request that names it in
`metadata.episode_id` goes on there. Any other request is played from its beginning in a new episode of the same seed,
whose lines have to be those of the history.

The lab's agents (`agent_…`) and complete training runs (`run_…`) are models, too: they answer as at `POST /chat`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import ConfigDict, Field, JsonValue
from pydantic_core import to_json

from reward_server.access import played_for, scenario_for, visible_collections
from reward_server.api.access import for_keys
from reward_server.api.answers import answers, chat_answers
from reward_server.api.body import CONVERSATION, JsonBody, validate
from reward_server.api.charged import evaluated, played
from reward_server.api.completing import completed, names_policy
from reward_server.api.context import Body, IdempotencyKey, answer, services_of, within
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.compat import examples
from reward_server.errors import FieldProblem, HistoryMismatch, InvalidRequest, NotFound
from trainer_client.wire import (
    ChatCompletionRequest,
    ChatMessage,
    CreateEpisodeRequest,
    EpisodeConfig,
    EvaluateRequest,
    Message,
    RequestModel,
    ResponseModel,
    TurnRequest,
)
from trainer_client.wire.base import Messages
from trainer_client.wire.chat import FinishReason

router = Router(prefix="/v1", tags=["doors"])
PERSONA, JUDGE = "persona", "judge"
ModelName = Annotated[str, Path(description="`persona:collection/scenario` or `judge:collection/scenario`")]
_COMPLETIONS = chat_answers(examples.CHAT_RESPONSE, 409)
HOW = f"Must be `{PERSONA}:collection/scenario` or `{JUDGE}:collection/scenario`; GET /v1/models lists them."


class StreamOptions(RequestModel):
    """The parts of a stream besides the completion."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    include_usage: bool = False
    """Whether the last chunk before the end says the tokens used."""


class ChatRequest(RequestModel):
    """A chat completion. Settings of language models (`temperature`, `max_tokens`) are for agents and runs alone."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1, max_length=300)]
    messages: Annotated[Messages, Field(min_length=1, max_length=512)]
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    """For streams only."""
    n: Literal[1] | None = None
    metadata: dict[str, JsonValue] | None = None
    """`episode_id` of an answer before goes on with that episode."""
    temperature: JsonValue = None
    max_tokens: JsonValue = None
    max_completion_tokens: JsonValue = None


class Choice(ResponseModel):
    """The one completion."""

    index: int
    message: ChatMessage
    finish_reason: FinishReason


class ChatEpisode(ResponseModel):
    """The place of a persona."""

    episode_id: str
    turn: int
    episode_complete: bool


class ChatResponse(ResponseModel):
    """A chat completion. Personas and judges use no tokens."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, int]
    labs: ChatEpisode | None = None
    """Of personas."""
    request_id: str


class Model(ResponseModel):
    """A model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(ResponseModel):
    """The models of the key."""

    object: Literal["list"]
    data: list[Model]
    request_id: str


class FoundModel(Model):
    """A model that was asked for."""

    request_id: str


@router.get("/models", response_model=ModelList, responses=answers(examples.MODELS))
async def openai_models(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """The scenarios of this key as OpenAI models: their personas and their judges."""
    catalog = services_of(request).catalog
    names = [
        f"{kind}:{found.card.slug}/{slug}"
        for found in visible_collections(lab, catalog)
        for slug, scenario in found.scenarios.items()
        for kind in ((PERSONA, JUDGE) if scenario.is_played else (JUDGE,))
    ]
    return answer(request, {"object": "list", "data": [_model(name) for name in names]})


@router.get("/models/{model:path}", response_model=FoundModel, responses=answers(examples.MODEL, 403, 404))
async def openai_model(request: Request, lab: Annotated[Lab, for_keys(*ANY)], model: ModelName) -> Body:
    """One of these models."""
    try:
        _, collection, scenario = _named(model)
    except InvalidRequest:
        raise NotFound("There is no such model; GET /v1/models lists the models of this key.") from None
    scenario_for(lab, services_of(request).catalog, collection, scenario)
    return answer(request, _model(model))


@router.post("/chat/completions", response_model=ChatResponse, responses=_COMPLETIONS)
async def openai_chat_completion(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN, Scope.SCORE)],
    chat: Annotated[ChatRequest, JsonBody(CONVERSATION, example=examples.CHAT_REQUEST)],
    key: IdempotencyKey = None,
) -> Body | Response:
    """A persona's next line, a judge's reward, or an agent's or a trained policy's turn, as a chat completion."""
    if names_policy(chat.model):
        lab.require(Scope.TRAIN)
        return await completed(request, lab, _for_policy(chat))
    kind, collection, scenario = _named(chat.model)
    if kind == JUDGE:
        lab.require(Scope.SCORE)
        text, told = await _judged(request, lab, chat, (collection, scenario), key), None
    else:
        lab.require(Scope.TRAIN)
        played_for(lab, services_of(request).catalog, collection, scenario)
        turn = await _played(request, lab, chat, (collection, scenario), key)
        text = turn["observation"]["content"]
        told = {name: turn[name] for name in ("episode_id", "turn", "episode_complete")}
    body: Body = {
        "id": f"chatcmpl-{request.state.request_id}",
        "object": "chat.completion",
        "created": int(services_of(request).clock.now().timestamp()),
        "model": chat.model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
    if told is not None:
        body["labs"] = told
    if chat.stream:
        with_usage = chat.stream_options is not None and chat.stream_options.include_usage
        return EventSourceResponse(_events(body, text, with_usage=with_usage))
    return answer(request, body)


def _for_policy(chat: ChatRequest) -> ChatCompletionRequest:
    """The request of `POST /chat` that says the same."""
    most = chat.max_tokens if chat.max_completion_tokens is None else chat.max_completion_tokens
    options = None if chat.stream_options is None else chat.stream_options.model_dump()
    said = [message.model_dump() for message in chat.messages]
    asked = {"model": chat.model, "messages": said, "temperature": chat.temperature, "max_tokens": most}
    return validate(ChatCompletionRequest, {**asked, "stream": chat.stream, "stream_options": options})


def _model(name: str) -> Body:
    return {"id": name, "object": "model", "created": 0, "owned_by": "labs"}


def _named(model: str) -> tuple[str, str, str]:
    kind, _, name = model.partition(":")
    collection, slash, scenario = name.partition("/")
    if kind not in (PERSONA, JUDGE) or not (collection and slash and scenario):
        raise InvalidRequest(errors=[FieldProblem(("model",), HOW)])
    return kind, collection, scenario


async def _judged(request: Request, lab: Lab, chat: ChatRequest, where: tuple[str, str], key: str | None) -> str:
    """The reward of a conversation, as JSON text."""
    collection, scenario = where
    wanted = EvaluateRequest(collection_slug=collection, scenario_slug=scenario, messages=chat.messages)
    result = await evaluated(request, lab, wanted, key)
    kept = {name: result[name] for name in ("reward", "scores", "evaluation_id", "scoring_version") if name in result}
    return json.dumps(kept)


async def _played(request: Request, lab: Lab, chat: ChatRequest, where: tuple[str, str], key: str | None) -> Body:
    """The persona's answer to the last message, and where it is."""
    collection, scenario = where
    services = services_of(request)
    history = [message for message in chat.messages if message.role in ("user", "assistant")]
    if not history or history[-1].role != "user":
        raise InvalidRequest(errors=[FieldProblem(("messages",), "Must end with a message of role user.")])
    given = (chat.metadata or {}).get("episode_id")
    if isinstance(given, str):
        turn = await _turn(request, lab, given, history[-1], key)
        return {**turn, "episode_id": given}
    config = EpisodeConfig(seed=_seed(chat, history) if chat.seed is None else chat.seed)
    wanted = CreateEpisodeRequest(collection_slug=collection, scenario_slug=scenario, score_turns=False, config=config)
    work = services.episodes.create(lab, wanted, None if key is None else _part(key, "create"))
    made = await within(services.settings.request_deadline_s, work)
    episode = made["episode_id"]
    # Where the agent speaks first, nobody has heard yet what the persona came with: it says so before it answers.
    opening = made["initial_observation"]["content"] if history[0].role == "user" else None
    turn = {}
    for i, (said, heard) in enumerate(_exchanges(history)):
        turn = await _turn(request, lab, episode, said, None if key is None else _part(key, str(i)))
        line = turn["observation"]["content"]
        shown = line if i or opening is None else f"{opening}\n\n{line}"
        if heard is not None and heard.content not in (shown, line):
            raise HistoryMismatch
        turn = {**turn, "observation": {**turn["observation"], "content": shown}}
    return {**turn, "episode_id": episode}


async def _turn(request: Request, lab: Lab, episode: str, said: Message, key: str | None) -> Body:
    message = validate(Message, {**said.model_dump(), "role": "assistant"})
    return await played(services_of(request), lab, episode, TurnRequest(messages=[message]), key)


def _exchanges(history: Sequence[Message]) -> Iterator[tuple[Message, Message | None]]:
    """The agent's messages, each with its answer; a line of the persona before that is its opening."""
    lines = history[1:] if history[0].role == "assistant" else history
    for i in range(0, len(lines), 2):
        said, heard = lines[i], lines[i + 1] if i + 1 < len(lines) else None
        if said.role != "user" or (heard is not None and heard.role != "assistant"):
            raise InvalidRequest(errors=[FieldProblem(("messages",), "Roles must alternate: user, assistant, user.")])
        yield said, heard


def _seed(chat: ChatRequest, history: Sequence[Message]) -> int:
    """The same conversation meets the same person, whichever of its turns is asked for."""
    first = next(message for message in history if message.role == "user")
    digest = hashlib.blake2b(f"{chat.model}\n{first.content}".encode(), digest_size=6).digest()
    return int.from_bytes(digest)


def _part(key: str, name: str) -> str:
    """An `Idempotency-Key` of a call that is part of this one."""
    return hashlib.blake2b(f"{key}/{name}".encode(), digest_size=24).hexdigest()


def _events(body: Body, text: str, *, with_usage: bool) -> Iterator[bytes]:
    """The completion as OpenAI streams one: role, content, end, and the usage if it was asked for."""
    head: dict[str, Any] = {name: body[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    deltas: tuple[tuple[Body, str | None], ...] = (
        ({"role": "assistant", "content": ""}, None),
        ({"content": text}, None),
        ({}, "stop"),
    )
    for delta, reason in deltas:
        chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        if with_usage:
            chunk["usage"] = None  # it comes in a chunk of its own
        if reason is not None and "labs" in body:
            chunk["labs"] = body["labs"]
        yield format_sse_event(data_str=to_json(chunk).decode())
    if with_usage:
        yield format_sse_event(data_str=to_json({**head, "choices": [], "usage": body["usage"]}).decode())
    yield format_sse_event(data_str="[DONE]")
