"""Scores of finished conversations: one, a batch, two side by side, a group."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from trainer_client.wire.base import (
    MAX_BATCH_ITEMS,
    MAX_GROUP_MEMBERS,
    MAX_NORMALIZATION_WINDOWS,
    JudgedRequest,
    Messages,
    RequestModel,
    ResponseModel,
    Reward,
    Role,
    WindowSpec,
)
from trainer_client.wire.reward import RewardConfig


class EvaluateRequest(JudgedRequest):
    """POST /evaluate."""

    messages: Annotated[Messages, Field(min_length=1, max_length=512)]
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


class CalibratedParts(ResponseModel):
    """The parts of a composite on the scale of a calibration."""

    rewards: dict[str, float]
    """By the name of the judge."""
    combined: float | None = None
    """One number of them all, where the calibration has weights for it."""


class EvaluationMetadata(ResponseModel):
    """The circumstances of an evaluation."""

    scenario_name: str
    evaluation_time_ms: float
    judge: str
    """Of a composite its parts, such as `rubric+reward_model:rm_0123456789ab`; else the judges of the rubric."""
    uncertainty: float | None = None
    calibrated: float | CalibratedParts | None = None
    """The reward on the scale of the calibration that `reward_config.calibration` names; of parts, each of them."""
    calibration_id: str | None = None
    undecided: list[str] | None = None
    """Of a rubric that came with the request: its criteria that no judge here can decide; they count for nothing."""


class EvaluateResponse(ResponseModel):
    """Answer of POST /evaluate."""

    evaluation_id: str
    reward: Reward
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    capped_by: list[str] | None = None
    """The kinds of caps that lowered the reward: for keys with full score access; without keys, only where one did."""
    scoring_version: str
    normalized: dict[str, Window] | None = None
    metadata: EvaluationMetadata
    request_id: str


class StoredEvaluation(ResponseModel):
    """Answer of GET /evaluations/{id}: the answer as it was given, and what was scored."""

    evaluation_id: str
    collection_slug: str
    scenario_slug: str
    source: Literal["evaluate", "batch", "compare", "job"]
    """The door it came through."""
    created_at: str
    reward: Reward
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    capped_by: list[str] | None = None
    scoring_version: str
    normalized: dict[str, Window] | None = None
    metadata: EvaluationMetadata | None = None
    """Absent for evaluations that were made before answers were kept."""
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
    capped_by: list[str] | None = None
    scoring_version: str | None = None
    """That of the batch, so that an item can be kept by itself."""
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

    messages: Annotated[Messages, Field(min_length=1, max_length=512)]


class CompareRequest(JudgedRequest):
    """POST /compare."""

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
    capped_by_a: list[str] | None = None
    """The kinds of caps that lowered the reward of a, and below of b: for whom an evaluation has `capped_by`."""
    capped_by_b: list[str] | None = None
    scoring_version: str
    undecided: list[str] | None = None
    """As in the metadata of an evaluation."""
    request_id: str


class GroupMember(Candidate):
    """One member of a group to be ranked."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class RankRequest(JudgedRequest):
    """POST /rank; ids must differ."""

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
    """The making of a ranking: side by side (`llm`), or by each member's own reward: the rubric's (`local`), else the
    judges of the composite."""

    scenario_name: str
    evaluation_time_ms: float
    judge: str


class RankResponse(ResponseModel):
    """Answer of POST /rank; results in input order."""

    results: list[RankedMember]
    relative: Literal[True]
    scoring_version: str
    metadata: RankMetadata
    request_id: str
