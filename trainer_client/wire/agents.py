"""Agents: policies under training or test, what they are asked, and how they stand beside each other."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from trainer_client.wire.base import (
    MAX_CONTENT_CHARACTERS,
    RequestModel,
    ResponseModel,
    Reward,
    SlugField,
    ToolCall,
)

MAX_SEEDS = 256
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]


class AgentRequest(RequestModel):
    """POST /agents: an OpenAI-compatible endpoint that speaks for a policy."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    base_url: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    """What comes before `/chat/completions`; most servers want it to end in `/v1`."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """The name under which the endpoint has the policy."""
    api_key: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")] | None = None
    """Sent to the endpoint as a bearer token. Stored encrypted; no answer holds it."""
    system_prompt: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)] | None = None
    """Default: the scenario's public name and description. Empty: none."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=32_768, strict=True)] | None = None


class ChangeAgentRequest(RequestModel):
    """PATCH /agents/{id}: what is named is changed; `null` sets a value back to none, where an agent can be without."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    base_url: Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None = None
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    api_key: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")] | None = None
    """Removed by `null`, and by another `base_url` that comes without a key: it is not sent to another place."""
    system_prompt: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=32_768, strict=True)] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("name at least one field to change")
        for name in ("name", "base_url", "model"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise ValueError(f"an agent cannot be without `{name}`")
        return self


class AgentSummary(ResponseModel):
    """An agent."""

    agent_id: str
    kind: str
    """`endpoint`."""
    name: str
    base_url: str | None = None
    model: str | None = None
    has_api_key: bool
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    created_at: str


class AgentResponse(AgentSummary):
    """An agent that was asked for."""

    request_id: str


class AgentList(ResponseModel):
    """Answer of GET /agents."""

    data: list[AgentSummary]
    next_cursor: str | None = None
    request_id: str


class AgentMessage(ResponseModel):
    """A message of an agent."""

    role: Literal["assistant"] = "assistant"
    content: str
    tool_calls: list[ToolCall] | None = None


class AgentUsage(ResponseModel):
    """Tokens as the endpoint counts them."""

    input_tokens: int
    output_tokens: int


class AgentChatResponse(ResponseModel):
    """Answer of POST /agents/{id}/chat."""

    agent_id: str
    message: AgentMessage
    usage: AgentUsage | None = None
    """Absent where the endpoint does not say."""
    request_id: str


class AgentOptions(RequestModel):
    """`agent` of a job of type `evaluate_agent`."""

    agent_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS)] | None = None
    """Default: 0 to 7. Each scenario is played with each of them; not with items, which have their own."""

    @model_validator(mode="after")
    def _different_seeds(self) -> Self:
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError("the seeds must differ")
        return self


class AgentItem(RequestModel):
    """One item of such a job: an episode to play."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    collection_slug: SlugField
    scenario_slug: SlugField
    seed: Seed


class Interval(ResponseModel):
    """A confidence interval."""

    low: Reward
    high: Reward


class ScenarioStanding(ResponseModel):
    """An agent in one scenario."""

    mean: Reward
    seeds: int
    """Different ones that were played; the mean is over them."""


class LeaderboardRow(ResponseModel):
    """An agent on the leaderboard."""

    rank: int | None = None
    """Among agents that played every scenario; absent for others, whose mean is of something else."""
    agent_id: str
    name: str
    mean: Reward
    """Over scenarios, of the means over seeds."""
    interval: Interval | None = None
    """95 %; absent where a scenario was played with one seed alone."""
    pass_k: dict[str, float] = Field(default_factory=dict)
    """By k, how likely every one of k seeds of a scenario passes, mean over scenarios."""
    episodes: int
    scenarios: dict[str, ScenarioStanding]


class LeaderboardResponse(ResponseModel):
    """Answer of GET /leaderboard."""

    collection_slug: str
    scoring_version: str
    """Of all rewards behind these rows: rewards of two versions do not compare."""
    scenarios: list[str]
    """What an agent has to have played to have a rank."""
    confidence: float
    passes_at: float | None = None
    """The reward with which a seed passes, in `pass_k`."""
    data: list[LeaderboardRow]
    other_versions: dict[str, int]
    """Episodes under other scoring versions; `?scoring_version=` shows those."""
    request_id: str
