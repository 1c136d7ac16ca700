"""The reward of an episode so far: its log, scored by the very call that `/evaluate` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reward_server.episodes.history import Line
from reward_server.episodes.machine import agent_role
from reward_server.scoring.breakdown import breakdown
from reward_server.scoring.config import read_config, without_calibration
from reward_server.scoring.metering import MeteredScorer
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import ScoreRequest
from reward_server.store.records import EpisodeRow
from trainer_client.wire import Message, RewardConfig


@dataclass(frozen=True)
class TurnScore:
    """What a turn is worth."""

    reward: float
    scores: Mapping[str, float] | None
    breakdown: Mapping[str, str] | None


NOT_SCORED = TurnScore(reward=0.0, scores=None, breakdown=None)
"""Where the episode was created with `score_turns` false."""


class TurnScorer:
    """Scores episodes."""

    def __init__(self, scorer: MeteredScorer) -> None:
        self._scorer = scorer

    def check(self, given: RewardConfig | None) -> None:
        """Refuse, before any work, a config that cannot be scored by (`InvalidRewardConfig`)."""
        self._scorer.check(without_calibration(read_config(given)))

    async def score(self, episode: EpisodeRow, log: Sequence[Line], given: RewardConfig | None) -> TurnScore:
        """The reward of the log; a judge's failure is raised. A turn's own config wins over the episode's."""
        if not episode.score_turns:
            return NOT_SCORED
        transcript = await self._scorer.read(
            episode.collection,
            episode.scenario,
            [_message(line) for line in log],
            agent_role(episode.observation_role),
        )
        config = without_calibration(read_config(given or episode.reward_config))
        request = ScoreRequest(episode.collection, episode.scenario, transcript, config, episode.lab_id)
        [outcome] = await self._scorer.score([request])
        scored = or_raise(outcome)
        # A composite without the rubric has no dimensions to show.
        return TurnScore(scored.reward, scored.scores or None, breakdown(scored) if scored.scores else None)


def _message(line: Line) -> Message:
    return Message.model_validate(
        {"role": line.role, "content": line.content, "tool_calls": line.tool_calls and list(line.tool_calls)}
    )
