"""Every call of the contract as data: method, path, body and the type of the answer.

Both clients are thin drivers over these functions, so a rule of the contract is written once. A
request is checked against the wire types here; what fails is a `BadRequest` that was never sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from trainer_client.errors import BadRequest, MalformedAnswer
from trainer_client.wire import (
    BatchEpisodesRequest,
    BatchEpisodesResponse,
    BatchItem,
    BatchResponse,
    BatchTurnsRequest,
    BatchTurnsResponse,
    CalibrationList,
    CalibrationResponse,
    CatalogResponse,
    CollectionResponse,
    CompareRequest,
    CompareResponse,
    CreateEpisodeRequest,
    CreateEpisodeResponse,
    DriftResponse,
    EpisodeList,
    EpisodeResponse,
    ErrorDetail,
    EvaluateRequest,
    EvaluateResponse,
    Message,
    RankRequest,
    RankResponse,
    RewardConfig,
    RewardModelList,
    RewardModelResponse,
    Role,
    ScenarioResponse,
    StoredEvaluation,
    TurnItem,
    TurnRequest,
    TurnResponse,
)

AnswerT = TypeVar("AnswerT", bound=BaseModel)
RequestT = TypeVar("RequestT", bound=BaseModel)
MessageLike = Message | Mapping[str, Any]
ItemLike = BatchItem | Mapping[str, Any]
TurnLike = TurnItem | Mapping[str, Any]
EpisodeLike = CreateEpisodeRequest | Mapping[str, Any]
RewardConfigLike = RewardConfig | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[AnswerT]):
    """One logical call; sent as often as needed, always with the same body and key."""

    method: str
    path: str
    answer: type[AnswerT]
    body: bytes | None = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    in_lines: bool = False
    """Whether the answer is JSON Lines, which `lines_of` makes one object of."""

    @staticmethod
    def lines_of(body: bytes) -> dict[str, Any]:
        """What such an answer is parsed from."""
        text = body.decode()
        return {"text": text, "rows": [json.loads(line) for line in text.splitlines() if line]}

    def headers(self) -> dict[str, str]:
        """Headers of this call alone."""
        headers = {"Content-Type": "application/json"} if self.method == "POST" else {}
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        return headers

    def read(self, body: bytes, request_id: str | None) -> AnswerT:
        """Parse a success; anything but the contract's shape is a `MalformedAnswer`."""
        try:
            return self.answer.model_validate(self.lines_of(body) if self.in_lines else json.loads(body))
        except (ValueError, RecursionError) as error:
            raise MalformedAnswer(
                f"The server's answer to {self.method} {self.path} is not what the contract says.",
                code="malformed_answer",
                status=200,
                request_id=request_id,
            ) from error


def new_key() -> str:
    """A fresh idempotency key."""
    return uuid4().hex


def catalog() -> Call[CatalogResponse]:
    """GET /catalog."""
    return Call("GET", "/catalog", CatalogResponse)


def collection(slug: str) -> Call[CollectionResponse]:
    """GET /collections/{slug}."""
    return Call("GET", f"/collections/{segment(slug)}", CollectionResponse)


def calibrations(*, limit: int | None = None, cursor: str | None = None) -> Call[CalibrationList]:
    """GET /calibrations."""
    return Call("GET", "/calibrations", CalibrationList, query=query_of(limit=limit, cursor=cursor))


def reward_models(*, limit: int | None = None, cursor: str | None = None) -> Call[RewardModelList]:
    """GET /reward-models."""
    return Call("GET", "/reward-models", RewardModelList, query=query_of(limit=limit, cursor=cursor))


def drift(*, collection_slug: str | None = None) -> Call[DriftResponse]:
    """GET /drift."""
    return Call("GET", "/drift", DriftResponse, query=query_of(collection_slug=collection_slug))


def delete_calibration(calibration_id: str) -> Call[CalibrationResponse]:
    """DELETE /calibrations/{id}."""
    return Call("DELETE", f"/calibrations/{segment(calibration_id)}", CalibrationResponse)


def activate_reward_model(reward_model_id: str, *, force: bool = False) -> Call[RewardModelResponse]:
    """POST /reward-models/{id}/activate."""
    path = f"/reward-models/{segment(reward_model_id)}/activate"
    query = query_of(force="true" if force else None)
    return Call("POST", path, RewardModelResponse, idempotency_key=new_key(), query=query)


def deactivate_reward_model(reward_model_id: str) -> Call[RewardModelResponse]:
    """POST /reward-models/{id}/deactivate."""
    path = f"/reward-models/{segment(reward_model_id)}/deactivate"
    return Call("POST", path, RewardModelResponse, idempotency_key=new_key())


def delete_reward_model(reward_model_id: str) -> Call[RewardModelResponse]:
    """DELETE /reward-models/{id}."""
    return Call("DELETE", f"/reward-models/{segment(reward_model_id)}", RewardModelResponse)


def scenario(collection_slug: str, slug: str) -> Call[ScenarioResponse]:
    """GET /collections/{slug}/scenarios/{slug}."""
    return Call("GET", f"/collections/{segment(collection_slug)}/scenarios/{segment(slug)}", ScenarioResponse)


def create_episode(
    collection_slug: str,
    scenario_slug: str,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
    observation_role: Role | None = None,
    persona: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    score_turns: bool = True,
    reward_config: RewardConfigLike | None = None,
    idempotency_key: str | None = None,
) -> Call[CreateEpisodeResponse]:
    """POST /episodes."""
    request = checked(
        CreateEpisodeRequest,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
        score_turns=score_turns,
        config=_config(seed, max_turns, observation_role, persona, metadata),
        reward_config=reward_config,
    )
    return post("/episodes", request, CreateEpisodeResponse, idempotency_key)


def batch_episodes(
    collection_slug: str,
    scenario_slug: str,
    count: int,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
    observation_role: Role | None = None,
    persona: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    score_turns: bool = True,
    reward_config: RewardConfigLike | None = None,
    idempotency_key: str | None = None,
) -> Call[BatchEpisodesResponse]:
    """POST /batch/episodes, a group."""
    request = checked(
        BatchEpisodesRequest,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
        count=count,
        score_turns=score_turns,
        config=_config(seed, max_turns, observation_role, persona, metadata),
        reward_config=reward_config,
    )
    return post("/batch/episodes", request, BatchEpisodesResponse, idempotency_key)


def start_episodes(items: Sequence[EpisodeLike], idempotency_key: str | None = None) -> Call[BatchEpisodesResponse]:
    """POST /batch/episodes, episodes that differ."""
    return post(
        "/batch/episodes", checked(BatchEpisodesRequest, items=list(items)), BatchEpisodesResponse, idempotency_key
    )


def batch_turns(items: Sequence[TurnLike], idempotency_key: str | None = None) -> Call[BatchTurnsResponse]:
    """POST /batch/turns."""
    request = checked(BatchTurnsRequest, items=list(items))
    return post("/batch/turns", request, BatchTurnsResponse, idempotency_key)


def turn(
    episode_id: str,
    messages: str | MessageLike | Sequence[MessageLike],
    *,
    reward_config: RewardConfigLike | None = None,
    terminate: bool = False,
    idempotency_key: str | None = None,
) -> Call[TurnResponse]:
    """POST /episodes/{id}/turns. A bare string is the new agent message."""
    request = checked(TurnRequest, messages=conversation(messages), reward_config=reward_config, terminate=terminate)
    return post(f"/episodes/{segment(episode_id)}/turns", request, TurnResponse, idempotency_key)


def get_episode(episode_id: str) -> Call[EpisodeResponse]:
    """GET /episodes/{id}."""
    return Call("GET", f"/episodes/{segment(episode_id)}", EpisodeResponse)


def delete_episode(episode_id: str) -> Call[EpisodeResponse]:
    """DELETE /episodes/{id}."""
    return Call("DELETE", f"/episodes/{segment(episode_id)}", EpisodeResponse)


def list_episodes(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    collection_slug: str | None = None,
    scenario_slug: str | None = None,
    status: str | None = None,
) -> Call[EpisodeList]:
    """GET /episodes."""
    query = query_of(
        limit=limit, cursor=cursor, collection_slug=collection_slug, scenario_slug=scenario_slug, status=status
    )
    return Call("GET", "/episodes", EpisodeList, query=query)


def get_evaluation(evaluation_id: str) -> Call[StoredEvaluation]:
    """GET /evaluations/{id}."""
    return Call("GET", f"/evaluations/{segment(evaluation_id)}", StoredEvaluation)


def evaluate(
    collection_slug: str,
    scenario_slug: str,
    messages: Sequence[MessageLike],
    *,
    agent_role: Role = "assistant",
    reward_config: RewardConfigLike | None = None,
    normalization_key: str | None = None,
    normalization_windows: Sequence[str] | None = None,
    idempotency_key: str | None = None,
) -> Call[EvaluateResponse]:
    """POST /evaluate."""
    request = checked(
        EvaluateRequest,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
        messages=conversation(messages),
        agent_role=agent_role,
        reward_config=reward_config,
        normalization_key=normalization_key,
        normalization_windows=None if normalization_windows is None else list(normalization_windows),
    )
    return post("/evaluate", request, EvaluateResponse, idempotency_key)


def batch_evaluate(items: Sequence[ItemLike], idempotency_key: str | None = None) -> Call[BatchResponse]:
    """POST /batch/evaluate. Items given as mappings are sent as they are: the server judges each on its own."""
    plain = [item.model_dump(exclude_none=True) if isinstance(item, BaseModel) else dict(item) for item in items]
    key = idempotency_key or new_key()
    return Call("POST", "/batch/evaluate", BatchResponse, body=_encoded({"items": plain}), idempotency_key=key)


def compare(
    collection_slug: str,
    scenario_slug: str,
    messages_a: Sequence[MessageLike],
    messages_b: Sequence[MessageLike],
    *,
    agent_role: Role = "assistant",
    reward_config: RewardConfigLike | None = None,
    idempotency_key: str | None = None,
) -> Call[CompareResponse]:
    """POST /compare."""
    request = checked(
        CompareRequest,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
        response_a={"messages": conversation(messages_a)},
        response_b={"messages": conversation(messages_b)},
        agent_role=agent_role,
        reward_config=reward_config,
    )
    return post("/compare", request, CompareResponse, idempotency_key)


def rank(
    collection_slug: str,
    scenario_slug: str,
    responses: Mapping[str, Sequence[MessageLike]],
    *,
    agent_role: Role = "assistant",
    reward_config: RewardConfigLike | None = None,
    idempotency_key: str | None = None,
) -> Call[RankResponse]:
    """POST /rank. The conversations of a group by id."""
    request = checked(
        RankRequest,
        collection_slug=collection_slug,
        scenario_slug=scenario_slug,
        responses=[{"id": name, "messages": conversation(messages)} for name, messages in responses.items()],
        agent_role=agent_role,
        reward_config=reward_config,
    )
    return post("/rank", request, RankResponse, idempotency_key)


def post(path: str, request: BaseModel, answer: type[AnswerT], key: str | None) -> Call[AnswerT]:
    """A POST with a key of its own, so that it can be sent again."""
    body = _encoded(request.model_dump(exclude_none=True))
    return Call("POST", path, answer, body=body, idempotency_key=key or new_key())


def query_of(**given: object) -> dict[str, str]:
    """The parts of a query that were given."""
    return {name: str(value) for name, value in given.items() if value is not None}


def _config(
    seed: int | None,
    max_turns: int | None,
    observation_role: Role | None,
    persona: str | None,
    metadata: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    given = {
        "seed": seed,
        "max_turns": max_turns,
        "observation_role": observation_role,
        "persona_slug": persona,
        "metadata": None if metadata is None else dict(metadata),
    }
    return {name: value for name, value in given.items() if value is not None} or None


def _encoded(content: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The request cannot be written as JSON: {error}", code="invalid_request") from error


def checked(model: type[RequestT], /, **fields: object) -> RequestT:
    """The request, or a `BadRequest` that was never sent."""
    try:
        return model.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        details = tuple(
            ErrorDetail(loc=list(item["loc"]), msg=item["msg"])
            for item in error.errors(include_url=False, include_context=False, include_input=False)
        )
        first = details[0]
        where = ".".join(str(part) for part in first.loc)
        raise BadRequest(f"{where}: {first.msg}", code="invalid_request", errors=details) from None


def conversation(messages: str | MessageLike | Sequence[MessageLike]) -> list[Any]:
    """Messages as a list; a text alone is one agent message."""
    if isinstance(messages, str):
        return [{"role": "assistant", "content": messages}]
    if isinstance(messages, Message | Mapping):
        return [messages]
    return list(messages)


def segment(value: str) -> str:
    """One path segment; dots alone would be resolved away by the URL parser."""
    if not value or value in (".", ".."):
        raise BadRequest("An identifier in the address is empty.", code="invalid_request")
    return quote(value, safe="")
