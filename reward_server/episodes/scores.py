"""The reward of an episode so far: its log, scored by the very call that `/evaluate` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reward_server.episodes.history import HistoryLine
from reward_server.episodes.machine import agent_role
from reward_server.scoring.breakdown import breakdown
from reward_server.scoring.config import read_config, without_calibration
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored
from reward_server.scoring.scorer import Scorer
from reward_server.store.records import EpisodeRow
from trainer_client.wire import RewardConfig, ToolCall


@dataclass(frozen=True)
class TurnScore:
    """The reward of a turn, or the reason why there is none."""

    reward: float
    scores: Mapping[str, float] | None
    breakdown: Mapping[str, str] | None
    scoring_version: str
    capped_by: Sequence[str] | None = None
    """The kinds of caps that lowered it; None where nothing was scored."""


def check_reward_config(scorer: Scorer, given: RewardConfig | None) -> None:
    """Refuse, before any work, a config that a turn cannot be scored by (`InvalidRewardConfig`)."""
    scorer.check(without_calibration(read_config(given)))


def request_of(
    scorer: Scorer, episode: EpisodeRow, log: Sequence[HistoryLine], given: RewardConfig | None
) -> ScoreRequest:
    """The request to score an episode; a turn's own config wins over the episode's."""
    where, role = (episode.collection, episode.scenario), agent_role(episode.observation_role)
    transcript = scorer.read(*where, list(map(_spoken, log)), role)
    config = without_calibration(read_config(given or episode.reward_config))
    return ScoreRequest(*where, transcript, config, episode.lab_id)


def unscored(scoring_version: str) -> TurnScore:
    """That of an episode which was created with `score_turns` false."""
    return TurnScore(0.0, None, None, scoring_version)


def shown(outcome: Scored) -> TurnScore:
    """The part of a reward that an answer shows."""
    # A composite without the rubric has no dimensions to show.
    scores, why = (outcome.scores, breakdown(outcome)) if outcome.scores else (None, None)
    return TurnScore(outcome.reward, scores, why, outcome.scoring_version, outcome.capped_by)


@dataclass(slots=True)
class _Spoken:
    """A line of the log as scoring reads it; it was checked when it came."""

    role: str
    content: str
    tool_calls: Sequence[ToolCall] | None


def _spoken(line: HistoryLine) -> _Spoken:
    return _Spoken(line.role, line.content, [ToolCall.model_validate(call) for call in line.tool_calls or ()])
