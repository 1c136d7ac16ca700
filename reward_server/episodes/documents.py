"""Response bodies of the episode calls, without their `request_id`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reward_server.auth.idempotency import Body
from reward_server.clock import to_iso
from reward_server.episodes.history import HistoryLine
from reward_server.episodes.machine import log_of, turns_left
from reward_server.episodes.scores import TurnScore
from reward_server.store.records import EpisodeRow, TurnRow
from reward_server.transcripts.tool_results import ToolResult
from scenarios.schema import ScenarioCard


def created(episode: EpisodeRow, card: ScenarioCard, scoring_version: str) -> Body:
    """Answer of POST /episodes."""
    return {
        "episode_id": episode.episode_id,
        "initial_observation": {"role": episode.observation_role, "content": episode.opening},
        "scenario": {"name": card.name, "description": card.description},
        "tools": [tool.shown() for tool in card.tools],
        "max_turns": episode.max_turns,
        "scoring_version": scoring_version,
        "expires_at": to_iso(episode.expires_at),
    }


def turn_taken(
    after: EpisodeRow, observation: str, score: TurnScore, reward_delta: float, calls: Sequence[ToolResult] = ()
) -> Body:
    """Answer of POST /episodes/{id}/turns."""
    body: Body = {
        "turn": after.turn,
        "observation": {"role": after.observation_role, "content": observation},
        "reward": score.reward,
        "reward_delta": reward_delta,
    }
    if score.scores is not None:
        body["scores"] = dict(score.scores)
    if score.breakdown is not None:
        body["score_breakdown"] = dict(score.breakdown)
    if score.capped_by is not None:
        body["capped_by"] = list(score.capped_by)
    body["scoring_version"] = score.scoring_version
    if calls:
        body["tool_results"] = [{"name": each.name, "accepted": each.error is None} for each in calls]
    errors = [{"name": each.name, "message": each.error} for each in calls if each.error is not None]
    if errors:
        body["tool_errors"] = errors
    body["turns_left"] = turns_left(after)
    body["episode_complete"] = after.terminal_reason is not None
    if after.terminal_reason is not None:
        body["terminal_reason"] = after.terminal_reason
    return body


def transcript(episode: EpisodeRow, turns: Sequence[TurnRow], now: datetime, scoring_version: str) -> Body:
    """Answer of GET and DELETE /episodes/{id}: the public transcript, and for some keys what was drawn for it.

    Its version is the one that scored the last turn; `scoring_version` where there is none yet.
    """
    body: Body = {
        "episode_id": episode.episode_id,
        "collection_slug": episode.collection,
        "scenario_slug": episode.scenario,
        "status": episode.status_at(now).value,
        "turn": episode.turn,
        "max_turns": episode.max_turns,
        "persona_slug": episode.persona_slug,
        "seed": episode.seed,
        "messages": [_message(line) for line in log_of(episode, turns)],
        "rewards": [row.reward for row in turns],
        "scoring_version": turns[-1].answer.get("scoring_version", scoring_version) if turns else scoring_version,
        "created_at": to_iso(episode.created_at),
        "expires_at": to_iso(episode.expires_at),
    }
    if episode.terminal_reason is not None:
        body["terminal_reason"] = episode.terminal_reason
    if episode.metadata is not None:
        body["metadata"] = episode.metadata
    return body


def _message(line: HistoryLine) -> Body:
    message: Body = {"role": line.role, "content": line.content}
    if line.tool_calls:
        message["tool_calls"] = list(line.tool_calls)
    return message
