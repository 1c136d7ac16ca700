"""Episodes: create, play, read, list, end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trainer_client.wire.base import (
    MAX_TURNS,
    JsonObject,
    Message,
    Messages,
    Observation,
    RequestModel,
    ResponseModel,
    Reward,
    Role,
    SlugField,
    TerminalReason,
)
from trainer_client.wire.reward import RewardConfig

Split = Literal["train", "eval"]


class EpisodeConfig(RequestModel):
    """`config` of POST /episodes."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=MAX_TURNS, strict=True)] | None = None
    observation_role: Role | None = None
    persona_slug: SlugField | None = None
    split: Split | None = None
    """Of a scenario with variants: those for training alone, or those for evaluation; all where it is left out."""
    metadata: JsonObject | None = None


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
    input_schema: dict[str, Any] | None = None
    """The JSON schema of a call's `input`, whatever the mode. Older servers do not send it."""


class ToolResult(ResponseModel):
    """The acceptance of a tool call: it names a tool and its input fits. Says nothing of its worth."""

    name: str
    accepted: bool


class ToolError(ResponseModel):
    """A tool call of the turn that was not accepted, and why. It costs reward; the turn was played."""

    name: str
    message: str


class PublicCard(ResponseModel):
    """The part of a scenario that an agent may know, beside its tools."""

    name: str
    description: str


class CreateEpisodeResponse(ResponseModel):
    """Answer of POST /episodes."""

    episode_id: str
    initial_observation: Observation
    scenario: PublicCard | None = None
    """As in the catalog. Older servers do not send it."""
    tools: list[ToolDefinition]
    max_turns: int
    scoring_version: str | None = None
    expires_at: str
    request_id: str


class TurnRequest(RequestModel):
    """POST /episodes/{id}/turns."""

    id: str | None = None
    """Accepted for compatibility; must equal the id in the path when given."""
    messages: Annotated[Messages, Field(min_length=1, max_length=2 * MAX_TURNS + 32)]
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
    capped_by: list[str] | None = None
    """The kinds of caps that lowered the reward: for keys with full score access; without keys, only where one did."""
    scoring_version: str | None = None
    tool_results: list[ToolResult] | None = None
    """One for each tool call of the turn, in order. Older servers do not send it."""
    tool_errors: list[ToolError] | None = None
    turns_left: Annotated[int, Field(ge=0, le=MAX_TURNS)] | None = None
    """How many turns the episode still allows: 0 once it is complete. Older servers do not send it."""
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
    persona_slug: str | None = None
    """The temperament that was asked for or drawn; for operators and keys with full score access, like `seed`."""
    seed: int | None = None
    messages: list[Message]
    rewards: list[Reward]
    scoring_version: str | None = None
    """That scored the last turn; before the first one, the one that would."""
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
