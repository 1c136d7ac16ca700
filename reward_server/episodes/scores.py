"""The reward of an episode so far: its log, scored by the very call that `/evaluate` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reward_server.episodes.history import Line
from reward_server.episodes.machine import agent_role
from reward_server.errors import LabsError
from reward_server.scoring.breakdown import breakdown
from reward_server.scoring.config import read_config, without_calibration
from reward_server.scoring.metering import MeteredBegun, MeteredScorer, ReadNow
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import ScoreRequest
from reward_server.store.records import EpisodeRow
from trainer_client.wire import RewardConfig, ToolCall


@dataclass(frozen=True)
class TurnScore:
    """What a turn is worth."""

    reward: float
    scores: Mapping[str, float] | None
    breakdown: Mapping[str, str] | None
    scoring_version: str
    capped_by: Sequence[str] | None = None
    """The kinds of caps that lowered it; None where nothing was scored."""


Log = tuple[EpisodeRow, Sequence[Line], RewardConfig | None]
"""An episode, its conversation so far, and the config that its last turn came with."""


class TurnScorer:
    """Scores episodes."""

    def __init__(self, scorer: MeteredScorer) -> None:
        self._scorer = scorer

    def check(self, given: RewardConfig | None) -> None:
        """Refuse, before any work, a config that cannot be scored by (`InvalidRewardConfig`)."""
        self._scorer.check(without_calibration(read_config(given)))

    @property
    def scoring_version(self) -> str:
        """The version that scores now."""
        return self._scorer.scoring_version

    async def score(self, episode: EpisodeRow, log: Sequence[Line], given: RewardConfig | None) -> TurnScore:
        """The reward of the log; a judge's failure is raised. A turn's own config wins over the episode's."""
        [outcome] = await self.score_all([(episode, log, given)])
        if isinstance(outcome, LabsError):
            raise outcome
        return outcome

    def begin(self, episode: EpisodeRow, given: RewardConfig | None) -> Callable[[Sequence[Line]], MeteredBegun] | None:
        """What a scoring thread that knows the log calls to begin scoring it, for `finish`; None where nothing is."""
        if not episode.score_turns:
            return None
        begin, config = self._scorer.begin(), without_calibration(read_config(given or episode.reward_config))
        role = agent_role(episode.observation_role)

        def begun(log: Sequence[Line]) -> MeteredBegun:
            messages = list(map(_spoken, log))
            return begin(ReadNow(episode.collection, episode.scenario, messages, role, config, episode.lab_id))

        return begun

    async def finish(self, begun: MeteredBegun) -> TurnScore:
        """The reward of a log that was begun with; a judge's failure is raised."""
        outcome = _shown(await self._scorer.finish(begun))
        if isinstance(outcome, LabsError):
            raise outcome
        return outcome

    async def score_all(self, logs: Sequence[Log]) -> list[TurnScore | LabsError]:
        """The same for many, in one pass; each fails alone."""
        requests = [await self._request(*log) for log in logs]
        wanted = [each for each in requests if isinstance(each, ScoreRequest)]
        found = iter(await self._scorer.score(wanted) if wanted else [])
        return [_shown(next(found)) if isinstance(each, ScoreRequest) else each for each in requests]

    async def read_ahead(self, logs: Sequence[tuple[EpisodeRow, Sequence[Line]]]) -> None:
        """Have all that is new in these conversations encoded together, before personas and judges ask for it."""
        requests = [await self._request(episode, log, None) for episode, log in logs]
        await self._scorer.read_ahead([each for each in requests if isinstance(each, ScoreRequest)])

    async def _request(
        self, episode: EpisodeRow, log: Sequence[Line], given: RewardConfig | None
    ) -> ScoreRequest | TurnScore | LabsError:
        """What is to be scored; the score where nothing is."""
        if not episode.score_turns:
            # Where the episode was created with `score_turns` false.
            return TurnScore(0.0, None, None, self._scorer.scoring_version)
        try:
            transcript = await self._scorer.read(
                episode.collection,
                episode.scenario,
                [_spoken(line) for line in log],
                agent_role(episode.observation_role),
            )
            config = without_calibration(read_config(given or episode.reward_config))
        except LabsError as error:
            return error
        return ScoreRequest(episode.collection, episode.scenario, transcript, config, episode.lab_id)


def _shown(outcome: Scored | Unscored) -> TurnScore | LabsError:
    if isinstance(outcome, Unscored):
        return outcome.error
    # A composite without the rubric has no dimensions to show.
    scores, why = (outcome.scores, breakdown(outcome)) if outcome.scores else (None, None)
    return TurnScore(outcome.reward, scores, why, outcome.scoring_version, outcome.capped_by)


@dataclass(slots=True)
class _Spoken:
    """A line of the log as scoring reads it; it was checked when it came."""

    role: str
    content: str
    tool_calls: Sequence[ToolCall] | None


def _spoken(line: Line) -> _Spoken:
    return _Spoken(line.role, line.content, [ToolCall.model_validate(call) for call in line.tool_calls or ()])
