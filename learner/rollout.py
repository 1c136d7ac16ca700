"""Play groups of episodes against the server, keeping the token ids of every turn.

Episodes go in waves: all live conversations of a wave speak in one batch, then take their turns on
the server at once, while another wave uses the model. What is in a batch depends on nothing but the
episodes themselves, so a run can be repeated exactly. An episode whose call fails for good leaves
its group and is counted there; it gets no reward.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from learner.display import Now, silent
from learner.generate.session import Completion, Continuation, Generator, Session
from learner.tokens import Renderer
from learner.types import Group, Segment, Trajectory
from trainer_client import AsyncLabsClient, LabsError
from trainer_client.wire import Message


@dataclass(frozen=True)
class Stage:
    """Where episodes are played."""

    collection: str
    scenario: str
    max_turns: int | None = None


@dataclass(frozen=True)
class Collected:
    """Groups, and where the time went (waves overlap, so the parts may add up to more than the whole)."""

    groups: tuple[Group, ...]
    seconds: float
    generating_s: float

    @property
    def trajectories(self) -> list[Trajectory]:
        """All finished episodes."""
        return [trajectory for group in self.groups for trajectory in group.trajectories]

    @property
    def errored(self) -> int:
        """Episodes that failed."""
        return sum(group.errored for group in self.groups)

    @property
    def error_codes(self) -> list[str]:
        """Why they failed."""
        return [code for group in self.groups for code in group.error_codes]


@dataclass
class _Episode:
    """One conversation while it is played."""

    number: int
    seed: int
    noise: tuple[int, ...]
    episode_id: str = ""
    segments: list[Segment] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    next_ids: list[int] = field(default_factory=list)
    persona: str = ""
    truncated: int = 0
    lossy: int = 0
    terminal_reason: str | None = None
    error: str | None = None

    @property
    def live(self) -> bool:
        return self.error is None and self.terminal_reason is None

    def continuation(self) -> Continuation:
        return Continuation(self.next_ids, np.random.SeedSequence([*self.noise, len(self.rewards)]))

    def trajectory(self) -> Trajectory:
        return Trajectory(
            segments=tuple(self.segments),
            turn_rewards=tuple(self.rewards),
            seed=self.seed,
            episode_id=self.episode_id,
            scores=dict(self.scores),
            terminal_reason=self.terminal_reason or "completed",
            truncated_turns=self.truncated,
            lossy_turns=self.lossy,
        )


@dataclass
class _Progress:
    """How far a collection has come; episodes end close together, so turns are told as well."""

    now: Now
    episodes: int
    turns: int = 0
    ended: int = 0

    def turned(self, *, ended: bool) -> None:
        self.turns += 1
        self.ended += ended
        self.tell()

    def tell(self) -> None:
        self.now(f"{self.episodes} episodes: {self.turns} turns played, {self.ended} ended")


class Rollouts:
    """Collects groups with one policy on one stage."""

    def __init__(
        self, client: AsyncLabsClient, generator: Generator, renderer: Renderer, stage: Stage, *, waves: int = 2
    ) -> None:
        self._client = client
        self._generator = generator
        self._renderer = renderer
        self._stage = stage
        self._waves = max(1, waves)
        self._model_room = asyncio.Lock()
        self._generating_s = 0.0
        self._progress = _Progress(silent, 0)

    async def collect(
        self, seeds: Sequence[int], group_size: int, noise: tuple[int, ...], now: Now = silent
    ) -> Collected:
        """Play `group_size` episodes for each seed; `noise` numbers make the sampling repeatable."""
        started, self._generating_s = time.monotonic(), 0.0
        self._progress = _Progress(now, len(seeds) * group_size)
        episodes = [
            _Episode(number=place * group_size + member, seed=seed, noise=(*noise, place, member))
            for place, seed in enumerate(seeds)
            for member in range(group_size)
        ]
        async with asyncio.TaskGroup() as tasks:
            for wave in range(self._waves):
                # Whole groups interleave over the waves, so that both take about as long.
                share = [episode for episode in episodes if (episode.number // group_size) % self._waves == wave]
                tasks.create_task(self._play_wave(share))
        groups = tuple(
            _group(seed, episodes[place * group_size : (place + 1) * group_size]) for place, seed in enumerate(seeds)
        )
        return Collected(groups, time.monotonic() - started, self._generating_s)

    async def _play_wave(self, episodes: Sequence[_Episode]) -> None:
        await asyncio.gather(*(self._open(episode) for episode in episodes))
        session = self._generator.start()
        while live := [episode for episode in episodes if episode.live]:
            completions = await self._speak(session, live)
            await asyncio.gather(*(self._turn(episode, completions[episode.number]) for episode in live))

    async def _speak(self, session: Session, live: Sequence[_Episode]) -> dict[int, Completion]:
        continuations = {episode.number: episode.continuation() for episode in live}
        async with self._model_room:
            started = time.monotonic()
            completions = await asyncio.to_thread(session.step, continuations)
            self._generating_s += time.monotonic() - started
        return completions

    async def _open(self, episode: _Episode) -> None:
        try:
            answer = await self._client.create_episode(
                self._stage.collection,
                self._stage.scenario,
                seed=episode.seed,
                max_turns=self._stage.max_turns,
                observation_role="user",
            )
        except LabsError as error:
            episode.error = error.code
            return
        episode.episode_id = answer.episode_id
        episode.persona = answer.initial_observation.content
        episode.next_ids = self._renderer.opening(episode.persona)
        self._progress.tell()

    async def _turn(self, episode: _Episode, completion: Completion) -> None:
        spoken = self._renderer.spoken(list(completion.ids))
        # From here on the persona is the user and the policy the assistant, whatever the server calls them.
        messages = [Message(role="user", content=episode.persona), Message(role="assistant", content=spoken.text)]
        try:
            answer = await self._client.turn(episode.episode_id, messages)
        except LabsError as error:
            episode.error = error.code
            return
        episode.segments += [Segment(tuple(episode.next_ids)), Segment(completion.ids, completion.logp)]
        episode.rewards.append(answer.reward)
        episode.scores = answer.scores or {}
        episode.truncated += not completion.ended
        episode.lossy += spoken.lossy
        if answer.terminal_reason == "error":
            episode.error = "episode_error"
        elif answer.episode_complete:
            episode.terminal_reason = answer.terminal_reason or "completed"
        else:
            episode.persona = answer.observation.content
            episode.next_ids = self._renderer.suffix(episode.persona, ended=completion.ended)
        self._progress.turned(ended=not episode.live)


def _group(seed: int, episodes: Sequence[_Episode]) -> Group:
    return Group(
        seed=seed,
        trajectories=tuple(episode.trajectory() for episode in episodes if episode.error is None),
        errored=sum(episode.error is not None for episode in episodes),
        error_codes=tuple(episode.error for episode in episodes if episode.error is not None),
    )
