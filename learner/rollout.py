"""Play groups of episodes against the server, keeping the token ids of every turn.

Episodes go in waves: all live conversations of a wave speak in one batch, then take their turns on
the server in one request, while another wave uses the model. What is in a batch depends on nothing but the
episodes themselves, so a run can be repeated exactly. An episode whose call fails for good leaves
its group and is counted there; it gets no reward.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from pydantic import ValidationError

from learner.display import Now, silent
from learner.failures import EPISODE_ERROR, TURN_TOO_LONG, Failure, context_full, messages_of
from learner.generate.session import Completion, Continuation, GenerationSession, Generator
from learner.own_environment import SERVER, compared, with_plugins
from learner.plugins import NO_PLUGINS, Plugins
from learner.retry import OutageRetryPolicy
from learner.types import Group, Segment, Trajectory
from learner.wave import Answered, EpisodeSpec, PolicyTurn, Started, Wave
from trainer_client import AsyncLabsClient, LabsError
from trainer_client.chat.tokens import Renderer, SpokenTokens
from trainer_client.chat.tools import Result, for_template, message_of, results_of
from trainer_client.rewards import GroupReward
from trainer_client.wire import Message
from trainer_client.wire.episodes import Split, ToolDefinition
from trainer_client.wire.reward import RewardConfig

SAMPLING_RULES = 0.7
"""Share of sampling in the time of episodes from which on one batch is faster than two. Two halves take 1.43 times as
long to sample as the whole (0.5 billion weights on a CPU), and hide what the server takes behind it."""


def share_of_sampling(records: Iterable[Mapping[str, Any]]) -> float | None:
    """In the time of the first evaluation of a run, which is played in one batch; None before it."""
    first = next((each for each in records if each["kind"] == "eval" and each.get("seconds/rollout")), None)
    return None if first is None else float(first["seconds/generating"]) / float(first["seconds/rollout"])


@dataclass(frozen=True)
class RolloutStage:
    """The scenario in which episodes are played."""

    collection: str
    scenario: str
    max_turns: int | None = None
    system: str | None = None
    """System prompt of the policy there."""
    reward_config: RewardConfig | None = None
    split: Split | None = None
    """Of a scenario with variants: those that are drawn from; None: all of them."""

    @property
    def name(self) -> str:
        """As the catalog writes it."""
        return f"{self.collection}/{self.scenario}"


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
        """The codes of the failures."""
        return [code for group in self.groups for code in group.error_codes]

    @property
    def error_messages(self) -> dict[str, str]:
        """The message of the first episode with each of these codes."""
        return {code: message for group in reversed(self.groups) for code, message in group.error_messages.items()}


@dataclass
class _Episode:
    """One conversation while it is played."""

    number: int
    place: int
    """The place of its group."""
    stage: RolloutStage
    seed: int
    noise: tuple[int, ...]
    renderer: Renderer
    episode_id: str = ""
    segments: list[Segment] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    next_ids: list[int] = field(default_factory=list)
    forked: bool = False
    """`next_ids` begin a row of their own."""
    row_length: int = 0
    """Tokens of the present row so far."""
    heard: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    results: list[tuple[Result, ...]] = field(default_factory=list)
    """Of the tool calls in each turn."""
    messages: list[Message] = field(default_factory=list)
    """The conversation as it is sent, with the turn that is not answered yet."""
    truncated: int = 0
    lossy: int = 0
    tool_calls: int = 0
    terminal_reason: str | None = None
    error: Failure | None = None

    @property
    def live(self) -> bool:
        return self.terminal_reason is None and self.error is None

    def continuation(self) -> Continuation:
        noise = np.random.SeedSequence([*self.noise, len(self.rewards)])
        return Continuation(self.next_ids, noise, fresh=self.forked)

    def stop(self, reason: Failure) -> None:
        """End here. What was played counts; where nothing was, there is no reward."""
        if self.rewards:
            self.terminal_reason = reason.code
        else:
            self.error = reason

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
            tool_calls=self.tool_calls,
        )


@dataclass
class _Progress:
    """The progress of a collection; episodes end close together, so turns are told as well."""

    now: Now
    episodes: int
    turns: int = 0
    ended: int = 0

    def turned(self, *, ended: bool) -> None:
        self.turns += 1
        self.ended += ended
        self.tell()

    def tell(self) -> None:
        self.now(f"{self.episodes} episodes: {self.turns} turns played, {self.ended} finished")


class BatchCollector(Protocol):
    """The source of a loop's batches."""

    async def collect(
        self,
        seeds: Sequence[int],
        group_size: int,
        noise: tuple[int, ...],
        now: Now = silent,
        stages: Sequence[RolloutStage] | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> Collected:
        """A group for each seed; equal arguments and weights give equal tokens.

        `numbers` are the places of the seeds in the batch they are a part of, if they are not all of it.
        """
        ...


class RolloutCollector:
    """Collects groups with one policy on one stage, or on several."""

    def __init__(
        self,
        client: AsyncLabsClient,
        generator: Generator,
        renderer: Renderer,
        stage: RolloutStage,
        *,
        waves: int | Callable[[], int] = 2,
        retry_policy: OutageRetryPolicy | None = None,
        plugins: Plugins = NO_PLUGINS,
    ) -> None:
        """`waves`: in how many batches episodes are played, or what says so before each collection."""
        self._generator = generator
        self._renderer = renderer
        self._stage = stage
        self._waves = waves if callable(waves) else lambda: waves
        self._server = with_plugins(Wave(client, retry_policy or OutageRetryPolicy()), plugins)
        self._group_reward = plugins.group_reward
        self._renderers: dict[str, Renderer] = {}
        self._model_room = asyncio.Lock()
        self._generating_s = 0.0
        self._progress = _Progress(silent, 0)

    async def collect(
        self,
        seeds: Sequence[int],
        group_size: int,
        noise: tuple[int, ...],
        now: Now = silent,
        stages: Sequence[RolloutStage] | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> Collected:
        """Play `group_size` episodes for each seed; `noise` numbers make the sampling repeatable.

        `stages` says where each seed is played, if not all on the one stage.
        """
        started, self._generating_s = time.monotonic(), 0.0
        self._progress = _Progress(now, len(seeds) * group_size)
        places = [self._stage] * len(seeds) if stages is None else list(stages)
        episodes = [
            _Episode(
                number=place * group_size + member,
                place=place,
                stage=stage,
                seed=seed,
                noise=(*noise, place if numbers is None else numbers[place], member),
                renderer=self._renderer,
            )
            for place, (seed, stage) in enumerate(zip(seeds, places, strict=True))
            for member in range(group_size)
        ]
        waves = max(1, self._waves())
        try:
            async with asyncio.TaskGroup() as tasks:
                for wave in range(waves):
                    # Whole groups interleave over the waves, so that both take about as long.
                    share = [episode for episode in episodes if (episode.number // group_size) % waves == wave]
                    tasks.create_task(self._play_wave(share))
        except ExceptionGroup as failures:
            # What ends one wave ends all: it is told as what it is, and not as a group of failures.
            raise failures.exceptions[0] from None
        groups = tuple(
            _group(seed, stage, episodes[place * group_size : (place + 1) * group_size])
            for place, (seed, stage) in enumerate(zip(seeds, places, strict=True))
        )
        return Collected(groups, time.monotonic() - started, self._generating_s)

    async def _play_wave(self, episodes: Sequence[_Episode]) -> None:
        await self._open(episodes)
        session = self._generator.start()
        while live := [episode for episode in episodes if episode.live]:
            completions = await self._speak(session, live)
            await self._turn(live, completions)
        if self._group_reward is not None:
            for _, members in itertools.groupby(episodes, key=lambda episode: episode.place):
                await self._compare(self._group_reward, list(members))

    async def _compare(self, reward: GroupReward, group: Sequence[_Episode]) -> None:
        """Reward the members of a group by what they are beside each other.

        An evaluation plays one episode of a seed, which has nothing beside it: the server's reward stays.
        """
        if len(group) == 1:
            return
        members = [episode for episode in group if episode.error is None]
        scored = await asyncio.to_thread(compared, reward, [episode.messages for episode in members])
        for place, episode in enumerate(members):
            if isinstance(scored, LabsError):
                episode.error = Failure.of(scored)
            else:
                episode.scores = {**scored[place].components, SERVER: episode.rewards[-1]}
                # The whole conversation was compared, and no part of it.
                episode.rewards = [*[0.0] * (len(episode.rewards) - 1), scored[place].reward]

    async def _speak(self, session: GenerationSession, live: Sequence[_Episode]) -> dict[int, Completion]:
        continuations = {episode.number: episode.continuation() for episode in live}
        async with self._model_room:
            started = time.monotonic()
            completions = await asyncio.to_thread(session.step, continuations)
            self._generating_s += time.monotonic() - started
        return completions

    async def _open(self, episodes: Sequence[_Episode]) -> None:
        wanted = [
            EpisodeSpec(
                stage.collection, stage.scenario, episode.seed, stage.max_turns, stage.reward_config, stage.split
            )
            for episode in episodes
            for stage in [episode.stage]
        ]
        for episode, answer in zip(episodes, await self._server.start(wanted), strict=True):
            if isinstance(answer, LabsError):
                episode.error = Failure.of(answer)
            else:
                self._begin(episode, answer)

    def _begin(self, episode: _Episode, answer: Started) -> None:
        episode.episode_id = answer.episode_id
        episode.renderer = self._renderer_for(episode.stage, answer.tools)
        episode.heard.append(answer.initial_observation.content)
        episode.next_ids = episode.renderer.opening(episode.heard[0])
        self._go_on_if_it_fits(episode)
        self._progress.tell()

    def _renderer_for(self, stage: RolloutStage, tools: Sequence[ToolDefinition]) -> Renderer:
        if stage.system is None and not tools:
            return self._renderer
        if stage.name not in self._renderers:
            self._renderers[stage.name] = self._renderer.within(stage.system, for_template(tools))
        return self._renderers[stage.name]

    def _go_on_if_it_fits(self, episode: _Episode) -> None:
        """A conversation that the model has no more positions for ends before its next turn."""
        if episode.forked:
            episode.row_length = 0
        limit, turn = self._generator.context, self._generator.max_tokens
        prompt = episode.row_length + len(episode.next_ids)
        if limit is not None and prompt + turn > limit:
            episode.stop(context_full(prompt, limit, turn, has_system=episode.stage.system is not None))

    async def _turn(self, episodes: Sequence[_Episode], completions: Mapping[int, Completion]) -> None:
        spoken = {each.number: each.renderer.spoken(list(completions[each.number].ids)) for each in episodes}
        for episode in episodes:
            try:
                # From here on the persona is the user and the policy the assistant, whatever the server calls them.
                heard = Message(role="user", content=episode.heard[-1])
                episode.messages += [heard, message_of(spoken[episode.number].aloud)]
            except ValidationError:
                episode.stop(TURN_TOO_LONG)
        speaking = [episode for episode in episodes if episode.live]
        said = [PolicyTurn(each.episode_id, tuple(each.messages), each.stage.reward_config) for each in speaking]
        for episode, answer in zip(speaking, await self._server.play(said), strict=True):
            if isinstance(answer, LabsError):
                episode.error = Failure.of(answer)
            else:
                self._take(episode, completions[episode.number], spoken[episode.number], answer)

    def _take(self, episode: _Episode, completion: Completion, spoken: SpokenTokens, answer: Answered) -> None:
        """Keep a turn that was answered."""
        given = Segment(tuple(episode.next_ids), fork=episode.forked)
        episode.segments += [given, completion.segment()]
        episode.row_length += len(given.ids) + len(completion.ids)
        episode.said.append(spoken.text)
        episode.rewards.append(answer.reward)
        episode.scores = answer.scores or {}
        episode.truncated += not completion.ended
        episode.lossy += spoken.lossy
        episode.results.append(results_of(episode.messages[-1]))
        episode.tool_calls += len(episode.results[-1])
        if answer.terminal_reason == "error":
            episode.error = EPISODE_ERROR
        elif answer.episode_complete:
            episode.terminal_reason = answer.terminal_reason or "completed"
        else:
            self._prepare(episode, answer.observation.content, ended=completion.ended)
        self._progress.turned(ended=not episode.live)

    def _prepare(self, episode: _Episode, persona: str, *, ended: bool) -> None:
        """Prepare what the policy reads next."""
        episode.heard.append(persona)
        episode.forked = episode.renderer.rewrites(episode.said[-1])
        if episode.forked:
            episode.next_ids = episode.renderer.prompt(episode.heard, episode.said, episode.results)
        else:
            episode.next_ids = episode.renderer.suffix(persona, ended=ended, results=episode.results[-1])
        self._go_on_if_it_fits(episode)


def _group(seed: int, stage: RolloutStage, episodes: Sequence[_Episode]) -> Group:
    failures = [episode.error for episode in episodes if episode.error is not None]
    return Group(
        seed=seed,
        trajectories=tuple(episode.trajectory() for episode in episodes if episode.error is None),
        errored=len(failures),
        error_codes=tuple(failure.code for failure in failures),
        error_messages=messages_of(failures),
        stage=stage.name,
    )
