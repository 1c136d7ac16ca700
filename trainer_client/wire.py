"""The wire types of the public HTTP contract: its one definition, used by client and server alike.

Requests forbid unknown fields; responses ignore them, so an older client reads a newer server.
Optional response fields are absent, never null: serialise with `exclude_none=True` where the
contract does not say null (only `Window.z` may be null).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

MAX_CONTENT_CHARACTERS = 10_000
MAX_OBJECT_CHARACTERS = 20_000
"""Of a tool call's input: characters of its keys and texts, and one for each value."""
MAX_BATCH_ITEMS = 100
MAX_GROUP_MEMBERS = 64
MAX_TURNS = 50
MAX_NORMALIZATION_WINDOWS = 5
MAX_COMPOSITE_PARTS = 8

SlugField = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Reward = Annotated[float, Field(ge=0.0, le=1.0)]
Role = Literal["assistant", "user"]
TerminalReason = Literal["completed", "max_turns_reached", "client_terminated", "error"]
WindowSpec = Annotated[str, StringConstraints(pattern=r"^\d+[dwmn]$", max_length=16)]


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what other JSON readers choke on, infinities, NaN and integers beyond 64 bits, and what is too much."""
    pending: list[object] = [value]
    size = 0
    while pending:
        item = pending.pop()
        size += 1
        if isinstance(item, dict):
            size += sum(map(len, item))
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
        elif isinstance(item, str):
            size += len(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("numbers must be finite")
        elif isinstance(item, int) and not -(2**63) <= item < 2**63:
            raise ValueError("integers must fit in 64 bits")
        if size > MAX_OBJECT_CHARACTERS:
            raise ValueError("the object is too large")
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_plain)]


class RequestModel(BaseModel):
    """Base of what a client sends: unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class ResponseModel(BaseModel):
    """Base of what the server sends: unknown fields are ignored by the client."""

    model_config = ConfigDict(extra="ignore")


# --- messages -----------------------------------------------------------------------------------


class ToolCall(BaseModel):
    """A tool call attached to the agent message that makes it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    type: Literal["artifact", "decision"] | None = None
    input: JsonObject


class Message(BaseModel):
    """One message. Keys of other chat formats (`name`, `tool_call_id`, …) are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    role: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)]
    tool_calls: Annotated[list[ToolCall], Field(max_length=16)] | None = None


class Observation(ResponseModel):
    """What the persona said."""

    role: Role
    content: str


# --- shared request parts -----------------------------------------------------------------------


class QualityWeights(RequestModel):
    """Weights of the criterion families; those left out are 0 and their scorers do not run."""

    success_metrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    failure_metrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    best_practices: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    rubrics: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    discovery: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    output_similarity: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0
    decision_match: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)] = 0.0


class CompositePart(RequestModel):
    """One judge of a composite reward."""

    judge: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    """`rubric`, `reward_model`, or the name of a plug-in of the server."""
    weight: Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False, strict=True)] = 1.0
    """Relative to the other parts; `min` takes no notice of it, nor does the gate of `gated` have one."""
    at_least: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False, strict=True)] | None = None
    """Of the first part of `gated`: what it has to reach for the other parts to count."""


class Composite(RequestModel):
    """A reward put together from several judges. Caps and gates of the scenario hold for it as for any other."""

    combine: Literal["weighted_sum", "min", "product", "gated"]
    parts: Annotated[list[CompositePart], Field(min_length=1, max_length=MAX_COMPOSITE_PARTS)]

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        names = [part.judge for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError("each judge may be named once")
        gated = self.combine == "gated"
        if gated and len(self.parts) < 2:
            raise ValueError("`gated` needs a gate and at least one further part")
        if [part.at_least is not None for part in self.parts] != [gated, *[False] * (len(self.parts) - 1)]:
            raise ValueError("`at_least` belongs to the first part of `gated`, and nowhere else")
        if self.combine != "min" and not any(part.weight > 0 for part in self.parts[gated:]):
            raise ValueError("at least one weight must be greater than 0")
        return self


class RewardConfig(RequestModel):
    """How the reward is put together for this request. The server refuses empty or all-zero weights."""

    quality_weights: QualityWeights | None = None
    skip_safety_gate: Annotated[bool, Field(strict=True)] = False
    composite: Composite | None = None
    """Instead of the rubric's reward, or of the composite that the scenario itself asks for."""


class EpisodeConfig(RequestModel):
    """`config` of POST /episodes."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=MAX_TURNS, strict=True)] | None = None
    observation_role: Role | None = None
    persona_slug: SlugField | None = None
    metadata: JsonObject | None = None


# --- POST /episodes, /episodes/{id}/turns, GET, DELETE -------------------------------------------


class CreateEpisodeRequest(RequestModel):
    """POST /episodes."""

    collection_slug: SlugField
    scenario_slug: SlugField
    score_turns: Annotated[bool, Field(strict=True)] = True
    config: EpisodeConfig | None = None
    reward_config: RewardConfig | None = None


class ToolDefinition(ResponseModel):
    """A tool the agent may call."""

    id: str
    type: Literal["artifact", "decision"]
    name: str
    mode: Literal["json_schema", "options"]
    description: str | None = None
    json_schema: dict[str, Any] | None = None
    options: list[str] | None = None


class CreateEpisodeResponse(ResponseModel):
    """Answer of POST /episodes."""

    episode_id: str
    initial_observation: Observation
    tools: list[ToolDefinition]
    max_turns: int
    expires_at: str
    request_id: str


class TurnRequest(RequestModel):
    """POST /episodes/{id}/turns."""

    id: str | None = None
    """Accepted for compatibility; must equal the id in the path when given."""
    messages: Annotated[list[Message], Field(min_length=1, max_length=2 * MAX_TURNS + 32)]
    reward_config: RewardConfig | None = None
    terminate: Annotated[bool, Field(strict=True)] = False


class TurnResponse(ResponseModel):
    """Answer of POST /episodes/{id}/turns."""

    turn: Annotated[int, Field(ge=1, le=MAX_TURNS)]
    observation: Observation
    reward: Reward
    reward_delta: float
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    episode_complete: bool
    terminal_reason: TerminalReason | None = None
    request_id: str


class EpisodeResponse(ResponseModel):
    """Answer of GET and DELETE /episodes/{id}."""

    episode_id: str
    collection_slug: str
    scenario_slug: str
    status: Literal["active", "complete", "expired"]
    turn: int
    max_turns: int
    messages: list[Message]
    rewards: list[Reward]
    terminal_reason: TerminalReason | None = None
    metadata: dict[str, Any] | None = None
    created_at: str
    expires_at: str
    request_id: str | None = None


class EpisodeList(ResponseModel):
    """Answer of GET /episodes."""

    data: list[EpisodeResponse]
    next_cursor: str | None = None
    request_id: str


# --- POST /evaluate, /batch/evaluate, /compare ---------------------------------------------------


class EvaluateRequest(RequestModel):
    """POST /evaluate."""

    collection_slug: SlugField
    scenario_slug: SlugField
    messages: Annotated[list[Message], Field(min_length=1, max_length=512)]
    agent_role: Role = "assistant"
    reward_config: RewardConfig | None = None
    normalization_key: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    normalization_windows: Annotated[list[WindowSpec], Field(max_length=MAX_NORMALIZATION_WINDOWS)] | None = None


class Window(ResponseModel):
    """One normalisation window: population statistics of earlier rewards with the same key."""

    z: float | None
    mean: float
    std: float
    n: int


class EvaluationMetadata(ResponseModel):
    """How an evaluation was made."""

    scenario_name: str
    evaluation_time_ms: float
    judge: str
    uncertainty: float | None = None


class EvaluateResponse(ResponseModel):
    """Answer of POST /evaluate."""

    evaluation_id: str
    reward: Reward
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    scoring_version: str
    normalized: dict[str, Window] | None = None
    metadata: EvaluationMetadata
    request_id: str


class BatchItem(EvaluateRequest):
    """One item of POST /batch/evaluate. The server validates items one by one: one bad item is one error."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class BatchRequest(RequestModel):
    """POST /batch/evaluate; ids must differ."""

    items: Annotated[list[BatchItem], Field(min_length=1, max_length=MAX_BATCH_ITEMS)]


class BatchSuccess(ResponseModel):
    """A scored item."""

    id: str
    status: Literal["success"]
    evaluation_id: str
    reward: Reward
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    normalized: dict[str, Window] | None = None
    metadata: EvaluationMetadata


class BatchError(ResponseModel):
    """An item without a reward, and why."""

    id: str
    status: Literal["error"]
    message: str
    code: str


class BatchResponse(ResponseModel):
    """Answer of POST /batch/evaluate; results in input order."""

    results: list[Annotated[BatchSuccess | BatchError, Field(discriminator="status")]]
    scoring_version: str
    total_time_ms: float
    request_id: str


class Candidate(RequestModel):
    """One side of a comparison."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=512)]


class CompareRequest(RequestModel):
    """POST /compare."""

    collection_slug: SlugField
    scenario_slug: SlugField
    response_a: Candidate
    response_b: Candidate
    agent_role: Role = "assistant"
    reward_config: RewardConfig | None = None


class CompareResponse(ResponseModel):
    """Answer of POST /compare."""

    comparison_id: str
    winner: Literal["a", "b", "tie"]
    reward_a: Reward
    reward_b: Reward
    margin: Reward
    scores_a: dict[str, Reward] | None = None
    scores_b: dict[str, Reward] | None = None
    scoring_version: str
    request_id: str


# --- POST /rank ----------------------------------------------------------------------------------


class GroupMember(Candidate):
    """One member of a group to be ranked."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class RankRequest(RequestModel):
    """POST /rank; ids must differ."""

    collection_slug: SlugField
    scenario_slug: SlugField
    responses: Annotated[list[GroupMember], Field(min_length=2, max_length=MAX_GROUP_MEMBERS)]
    agent_role: Role = "assistant"
    reward_config: RewardConfig | None = None

    @field_validator("responses")
    @classmethod
    def _ids_differ(cls, responses: list[GroupMember]) -> list[GroupMember]:
        if len({member.id for member in responses}) < len(responses):
            raise ValueError("ids must differ")
        return responses


class RankedMember(ResponseModel):
    """A member's score, which compares inside its group alone, and its place: 1 is best, equal scores share one."""

    id: str
    score: Reward
    rank: Annotated[int, Field(ge=1, le=MAX_GROUP_MEMBERS)]


class RankMetadata(ResponseModel):
    """How a ranking was made: by each member's own reward (`local`), or side by side (`llm`)."""

    scenario_name: str
    evaluation_time_ms: float
    judge: Literal["local", "llm"]


class RankResponse(ResponseModel):
    """Answer of POST /rank; results in input order."""

    results: list[RankedMember]
    relative: Literal[True]
    scoring_version: str
    metadata: RankMetadata
    request_id: str


# --- GET /catalog --------------------------------------------------------------------------------


class ScenarioSummary(ResponseModel):
    """A scenario as the catalog shows it."""

    slug: str
    name: str
    description: str
    dimensions: list[str]
    max_turns: int
    tools: int


class CollectionSummary(ResponseModel):
    """A collection as the catalog shows it."""

    slug: str
    name: str
    description: str
    version: str
    scenarios: list[ScenarioSummary]


class CatalogResponse(ResponseModel):
    """Answer of GET /catalog and /collections."""

    collections: list[CollectionSummary]
    request_id: str


class CollectionResponse(CollectionSummary):
    """Answer of GET /collections/{slug}."""

    request_id: str


class ScenarioResponse(ScenarioSummary):
    """Answer of GET /collections/{slug}/scenarios/{slug}: adds what `config.persona_slug` may be."""

    personas: list[str]
    request_id: str


# --- errors --------------------------------------------------------------------------------------


class ErrorDetail(ResponseModel):
    """One thing wrong with a request; never repeats the input."""

    loc: list[str | int]
    msg: str


class ErrorData(ResponseModel):
    """`data` of the error envelope."""

    request_id: str
    code: str
    errors: list[ErrorDetail] | None = None


class ErrorEnvelope(ResponseModel):
    """Every error response."""

    message: str
    data: ErrorData
