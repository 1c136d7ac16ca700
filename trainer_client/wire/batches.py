"""Many episodes in one request: a group started at once, one step of many conversations at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainer_client.wire.base import (
    MAX_BATCH_ITEMS,
    MAX_TURNS,
    Message,
    Observation,
    RequestModel,
    ResponseModel,
    Reward,
    SlugField,
    TerminalReason,
)
from trainer_client.wire.episodes import (
    CreateEpisodeRequest,
    EpisodeConfig,
    PublicCard,
    ToolDefinition,
    ToolError,
    ToolResult,
)
from trainer_client.wire.reward import RewardConfig


class BatchEpisodesRequest(RequestModel):
    """POST /batch/episodes: `count` episodes of one scenario, seed and persona, or `items` that differ."""

    collection_slug: SlugField | None = None
    scenario_slug: SlugField | None = None
    score_turns: Annotated[bool, Field(strict=True)] = True
    config: EpisodeConfig | None = None
    reward_config: RewardConfig | None = None
    count: Annotated[int, Field(ge=1, le=MAX_BATCH_ITEMS, strict=True)] | None = None
    items: Annotated[list[CreateEpisodeRequest], Field(min_length=1, max_length=MAX_BATCH_ITEMS)] | None = None


class StartedEpisode(ResponseModel):
    """One episode of a group."""

    episode_id: str
    initial_observation: Observation
    scenario: PublicCard | None = None
    tools: list[ToolDefinition]
    max_turns: int
    scoring_version: str | None = None
    expires_at: str


class BatchEpisodesResponse(ResponseModel):
    """Answer of POST /batch/episodes, in the order asked for."""

    episodes: list[StartedEpisode]
    request_id: str


class TurnItem(RequestModel):
    """One episode's turn in POST /batch/turns."""

    episode_id: str
    messages: Annotated[list[Message], Field(min_length=1, max_length=2 * MAX_TURNS + 32)]
    reward_config: RewardConfig | None = None
    terminate: Annotated[bool, Field(strict=True)] = False


class BatchTurnsRequest(RequestModel):
    """POST /batch/turns."""

    items: Annotated[list[TurnItem], Field(min_length=1, max_length=MAX_BATCH_ITEMS)]


class PlayedTurn(ResponseModel):
    """A turn that was answered."""

    episode_id: str
    status: Literal["success"] = "success"
    turn: Annotated[int, Field(ge=1, le=MAX_TURNS)]
    observation: Observation
    reward: Reward
    reward_delta: float
    scores: dict[str, Reward] | None = None
    score_breakdown: dict[str, str] | None = None
    capped_by: list[str] | None = None
    scoring_version: str | None = None
    tool_results: list[ToolResult] | None = None
    tool_errors: list[ToolError] | None = None
    turns_left: Annotated[int, Field(ge=0, le=MAX_TURNS)] | None = None
    episode_complete: bool
    terminal_reason: TerminalReason | None = None


class FailedTurn(ResponseModel):
    """A turn that was not: it has a reason and no reward, and may be sent again."""

    episode_id: str
    status: Literal["error"] = "error"
    message: str
    code: str


class BatchTurnsResponse(ResponseModel):
    """Answer of POST /batch/turns: one result for each item, in their order."""

    results: list[Annotated[PlayedTurn | FailedTurn, Field(discriminator="status")]]
    request_id: str
