"""The episode as a state machine: what is allowed now, and what a turn makes of it.

    (create) ──> active ──turn──> active | complete      complete: persona done, turns used up, or terminated
                   └──24 h without activity──> expired   (follows from the time, never stored)

Pure: rows in, rows out. It knows nothing of the store, the persona or the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from reward_server.episodes.history import HistoryLine
from reward_server.errors import EpisodeNotFound
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow
from trainer_client.wire import Role


class TerminalReason(StrEnum):
    """The reason why an episode is complete."""

    COMPLETED = "completed"
    MAX_TURNS_REACHED = "max_turns_reached"
    CLIENT_TERMINATED = "client_terminated"
    ERROR = "error"


def require_alive(episode: EpisodeRow, now: datetime) -> None:
    """Raise `EpisodeNotFound` when the episode has expired."""
    if episode.status_at(now) is EpisodeStatus.EXPIRED:
        raise EpisodeNotFound


def agent_role(observation_role: str) -> Role:
    """The role of the agent's lines: the one that the persona does not have."""
    return "user" if observation_role == "assistant" else "assistant"


def log_of(episode: EpisodeRow, turns: Sequence[TurnRow]) -> list[HistoryLine]:
    """The conversation so far: the opening, then agent and persona in turn."""
    persona, agent = episode.observation_role, agent_role(episode.observation_role)
    log = [HistoryLine(persona, episode.opening)]
    for row in turns:
        log.append(HistoryLine(agent, row.agent_content, tuple(row.tool_calls) if row.tool_calls else None))
        log.append(HistoryLine(persona, row.observation))
    return log


def log_with(
    episode: EpisodeRow, turns: Sequence[TurnRow], message: HistoryLine, observation: str | None = None
) -> list[HistoryLine]:
    """The conversation with one more agent message, and the persona's answer once there is one."""
    agent_line = HistoryLine(agent_role(episode.observation_role), message.content, message.tool_calls)
    log = [*log_of(episode, turns), agent_line]
    return log if observation is None else [*log, HistoryLine(episode.observation_role, observation)]


def after_turn(
    episode: EpisodeRow, *, persona_state: dict[str, Any], persona_done: bool, terminate: bool, now: datetime
) -> EpisodeRow:
    """The episode after one more answered turn.

    The agent's wish to end it counts first: it asked for this ending by name. A persona that is done
    counts before the turn cap, since nothing was cut off.
    """
    turn = episode.turn + 1
    reason: TerminalReason | None = None
    if terminate:
        reason = TerminalReason.CLIENT_TERMINATED
    elif persona_done:
        reason = TerminalReason.COMPLETED
    elif turn >= episode.max_turns:
        reason = TerminalReason.MAX_TURNS_REACHED
    return replace(
        episode,
        turn=turn,
        persona_state=persona_state,
        status=EpisodeStatus.COMPLETE if reason else EpisodeStatus.ACTIVE,
        terminal_reason=reason.value if reason else None,
        active_at=now,
    )


def turns_left(episode: EpisodeRow) -> int:
    """How many turns the episode still allows: none once it is complete, whatever ended it."""
    return 0 if episode.status is EpisodeStatus.COMPLETE else episode.max_turns - episode.turn


def terminated(episode: EpisodeRow, now: datetime) -> EpisodeRow:
    """The episode ended by the agent between turns; one that is complete already stays as it is."""
    require_alive(episode, now)
    if episode.status is EpisodeStatus.COMPLETE:
        return episode
    return replace(
        episode,
        status=EpisodeStatus.COMPLETE,
        terminal_reason=TerminalReason.CLIENT_TERMINATED.value,
        active_at=now,
    )


def reward_delta(reward: float, before: float) -> float:
    """The step between two rewards of 4 decimals, itself of 4 decimals, so that steps add up exactly."""
    return round(reward - before, 4) + 0.0
