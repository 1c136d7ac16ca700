"""Files and jobs: work in the background that survives restarts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from trainer_client.wire.agents import AgentOptions
from trainer_client.wire.base import RequestModel, ResponseModel, Role, SlugField
from trainer_client.wire.reward import RewardConfig

MAX_INLINE_ITEMS = 1000
JobType = Literal[
    "evaluate",
    "compare",
    "rescore",
    "train_reward_model",
    "calibrate",
    "measure_agreement",
    "evaluate_agent",
    "check_scenarios",
]
OWNER = r"^(sv_[0-9a-f]{12}(_[0-9a-f]{8})?|rm_[0-9a-f]{12})$"
OPTIONS = {
    "training": "train_reward_model",
    "calibration": "calibrate",
    "agreement": "measure_agreement",
    "agent": "evaluate_agent",
}
"""Fields of a job that go with one type."""
JobStatus = Literal["queued", "running", "completed", "cancelled", "failed"]


def _rising(scale: tuple[float, float]) -> tuple[float, float]:
    if not scale[0] < scale[1]:
        raise ValueError("must be two numbers, the lower one first")
    return scale


Number = Annotated[float, Field(allow_inf_nan=False)]
Scale = Annotated[tuple[Number, Number], AfterValidator(_rising)]


class FileResponse(ResponseModel):
    """Answer of POST /files and GET /files/{id}."""

    file_id: str
    name: str
    size_bytes: int
    lines: int
    sha256: str
    created_at: str
    deleted: bool | None = None
    request_id: str | None = None


class FileList(ResponseModel):
    """Answer of GET /files."""

    data: list[FileResponse]
    next_cursor: str | None = None
    request_id: str


class TrainingOptions(RequestModel):
    """Options for training a reward model; the defaults are those of `labs reward-model train`."""

    scale: Scale = (0.0, 1.0)
    """The labels that mean 0 and 1."""
    ties: Literal["drop", "half"] = "drop"
    """Pairs without a winner: left out, or learned as a tie."""
    held_out: Annotated[float, Field(ge=0.05, le=0.5)] = 0.2
    """Share of the rows to measure on."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    epochs: Annotated[int, Field(ge=1, le=1000)] = 200
    uncertainty: Literal["bayesian"] = "bayesian"
    keep_uncertainty: bool = False
    """Keep an uncertainty that is not shown to sort the errors of the held-out rows, too."""
    reads: Literal["answers", "words"] = "answers"
    """What an agent earns by in a scenario: the answers it got, or its own words, too."""
    features: Literal["auto", "all", "content", "meaning"] = "auto"


class CalibrationOptions(RequestModel):
    """Options for fitting a calibration: its kind, and of which rewards."""

    method: Literal["temperature", "isotonic", "z_score", "min_max", "percentile"]
    scale: Scale = (0.0, 1.0)
    """The labels that mean 0 and 1."""
    belongs_to: Annotated[str, StringConstraints(pattern=OWNER)] | None = None
    """The scoring version or reward model that made the rewards, where rows do not say."""
    combine: bool = False
    """Also fit one combination of several named rewards."""


class AgreementOptions(RequestModel):
    """Options for measuring judges; the defaults are those of `labs judges agree`."""

    judges: Annotated[list[SlugField], Field(min_length=1, max_length=20)] | None = None
    """Those of the server that are computed there (`labs judges list`); default: `rubric`. Not with rows of scores."""
    scale: Scale = (0.0, 1.0)
    """The labels that mean 0 and 1."""
    attacked: Annotated[int, Field(ge=0, le=200)] = 50
    """Conversations that are attacked and read again; 0 for none."""


class JobRequest(RequestModel):
    """POST /jobs. Everything but `type` and the input is a default for the items that leave it out."""

    type: JobType
    file_id: str | None = None
    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_INLINE_ITEMS)] | None = None
    collection_slug: SlugField | None = None
    scenario_slug: SlugField | None = None
    agent_role: Role | None = None
    reward_config: RewardConfig | None = None
    source: Literal["episodes", "evaluations"] | None = None
    """Of `rescore`: all of the lab's, of one collection or scenario if those are given."""
    training: TrainingOptions | None = None
    """Of `train_reward_model`."""
    calibration: CalibrationOptions | None = None
    """Of `calibrate`, which needs them."""
    agreement: AgreementOptions | None = None
    """Of `measure_agreement`."""
    agent: AgentOptions | None = None
    """Of `evaluate_agent`, which needs them: who plays, with which seeds."""

    @model_validator(mode="after")
    def _of_its_type(self) -> Self:
        for name, of in OPTIONS.items():
            if getattr(self, name) is not None and self.type != of:
                raise ValueError(f"`{name}` goes with jobs of type {of}")
        if self.type == "calibrate" and self.calibration is None:
            raise ValueError("`calibration` with a `method` is needed")
        if self.type == "evaluate_agent":
            if self.agent is None:
                raise ValueError("`agent` with an `agent_id` is needed")
            if self.reward_config is not None or self.agent_role is not None:
                raise ValueError("agents are evaluated under the scenario's own reward, and speak as `assistant`")
        return self


class JobCounts(ResponseModel):
    """Items of a job by what became of them."""

    total: int
    done: int
    failed: int
    """The item itself cannot be served; its result says why."""
    dead: int
    """Every attempt failed for reasons that were not the item's; POST /jobs/{id}/retry takes them again."""
    remaining: int


class JobResponse(ResponseModel):
    """Answer of POST /jobs and GET /jobs/{id}."""

    job_id: str
    type: str
    status: JobStatus
    """`failed`: it is over, and not one item has a result."""
    file_id: str
    counts: JobCounts
    progress: float
    stage: str | None = None
    """Of a training: what it is at."""
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    eta_s: float | None = None
    waits_for: str | None = None
    """The code of the daily limit that its lab has used up, while it is queued for that."""
    waits_until: str | None = None
    """When the lab's next day begins."""
    error: str | None = None
    """Why it failed, in a line."""
    request_id: str | None = None


class JobList(ResponseModel):
    """Answer of GET /jobs."""

    data: list[JobResponse]
    next_cursor: str | None = None
    request_id: str


class Change(ResponseModel):
    """The difference of rewards between two scoring versions."""

    n: int
    changed: int
    mean_before: float
    mean_after: float
    mean_abs_delta: float
    rank_correlation: float | None = None
    """Spearman's; absent where one side has no order."""


class ChangedReward(ResponseModel):
    """One of the rewards that changed most."""

    episode_id: str | None = None
    evaluation_id: str | None = None
    before: float
    after: float
    delta: float


class JobReport(ResponseModel):
    """Answer of GET /jobs/{id}/report: means of `evaluate` and `evaluate_agent`, winners of `compare`, and so on."""

    job_id: str
    type: str
    items: int
    errors: dict[str, int]
    """Items without a result, by code."""
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    winners: dict[str, int] | None = None
    mean_margin: float | None = None
    n: int | None = None
    changed: int | None = None
    mean_before: float | None = None
    mean_after: float | None = None
    mean_abs_delta: float | None = None
    rank_correlation: float | None = None
    versions_before: dict[str, int] | None = None
    versions_after: dict[str, int] | None = None
    by_scenario: dict[str, Change] | None = None
    largest: list[ChangedReward] | None = None
    reward_model_id: str | None = None
    """What a training made."""
    calibration_id: str | None = None
    agreement: dict[str, Any] | None = None
    """What a measurement found."""
    request_id: str | None = None


class JobResult(ResponseModel):
    """One line of GET /jobs/{id}/results; the other fields are those of the call that the item stands for."""

    model_config = ConfigDict(extra="allow")

    index: int
    """The item's place in the input, from 0."""
    id: str | None = None
    status: Literal["success", "error"]
    reward: float | None = None
    message: str | None = None
    code: str | None = None
