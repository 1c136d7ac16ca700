"""Play many episodes at once with any agent, and return what happened in each.

An episode that failed (the server, a provider, the agent itself) comes back as errored, with the
reason and no reward: nothing here turns a failure into a number. Where not one episode could be
started, for one reason that will not pass by itself, that reason is raised instead. The persona is
mapped to the `user` role and the agent to `assistant`, whatever roles the server uses. Episodes that
nobody will go on with, because the agent failed or the whole was cancelled, are ended on the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer_client.agent import Agent, AgentRunner, ChatMessage, runner_for
from trainer_client.async_client import AsyncLabsClient
from trainer_client.bridge import async_like, run_to_end
from trainer_client.calls import RewardConfigLike
from trainer_client.client import LabsClient
from trainer_client.errors import ConnectionFailed, DeadlineExceeded, LabsError, Unscored
from trainer_client.wire import CreateEpisodeResponse, ToolDefinition
from trainer_client.wire.episodes import Split

ABANDON_WITHIN_S = 5.0
"""How long ending an episode that nobody will go on with may take."""

SystemPrompt = str | Callable[[CreateEpisodeResponse], str | None] | None


@dataclass(frozen=True)
class RolloutError:
    """The reason why an episode has no reward."""

    code: str
    message: str


@dataclass(frozen=True)
class Rollout:
    """One episode as the trainer sees it."""

    collection: str
    scenario: str
    seed: int | None
    episode_id: str | None
    messages: tuple[ChatMessage, ...]
    """Persona lines as `user`, agent lines as `assistant`, after the system message if one was given."""
    rewards: tuple[float, ...]
    """Reward of the conversation so far, after each agent turn that was answered."""
    scores: Mapping[str, float] | None
    """Dimensions after the last turn."""
    terminal_reason: str | None
    error: RolloutError | None = None
    tools: tuple[ToolDefinition, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the episode ran to its end."""
        return self.error is None

    @property
    def turns(self) -> int:
        """Agent turns that were answered."""
        return len(self.rewards)

    @property
    def reward(self) -> float:
        """Reward of the whole conversation; raises for an errored episode."""
        if self.error is not None:
            raise Unscored(f"The episode has no reward: {self.error.message}", code=self.error.code)
        return self.rewards[-1]


@dataclass(frozen=True)
class Rollouts:
    """All episodes of one `play`, in the order of their seeds."""

    rollouts: tuple[Rollout, ...]

    def __iter__(self) -> Iterator[Rollout]:
        return iter(self.rollouts)

    def __len__(self) -> int:
        return len(self.rollouts)

    def __getitem__(self, index: int) -> Rollout:
        return self.rollouts[index]

    @property
    def completed(self) -> tuple[Rollout, ...]:
        """Those with a reward."""
        return tuple(rollout for rollout in self.rollouts if rollout.ok)

    @property
    def errored(self) -> tuple[Rollout, ...]:
        """Those without."""
        return tuple(rollout for rollout in self.rollouts if not rollout.ok)

    @property
    def mean_reward(self) -> float:
        """Mean over the completed episodes alone; raises when there is none."""
        rewards = [rollout.reward for rollout in self.completed]
        if rewards:
            return sum(rewards) / len(rewards)
        error = next((rollout.error for rollout in self.rollouts if rollout.error is not None), None)
        if error is None:
            raise Unscored("No episode was played, so there is no mean reward.", code="no_episodes")
        raise Unscored(
            f"None of the {len(self)} episodes has a reward; the first failed with: {error.message}", code=error.code
        )


Progress = Callable[[int, int, Rollout], None]
"""Called after each episode with how many are done, how many there are, and the one that just ended."""


@dataclass(frozen=True)
class EpisodePlan:
    """The part that every episode of one `play` shares."""

    collection: str
    scenario: str
    max_turns: int | None = None
    persona: str | None = None
    reward_config: RewardConfigLike | None = None
    metadata: Mapping[str, Any] | None = None
    system: SystemPrompt = None
    split: Split | None = None


@dataclass
class _Log:
    """The running record of one episode."""

    episode_id: str | None = None
    messages: list[ChatMessage] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    scores: dict[str, float] | None = None
    terminal_reason: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    failure: LabsError | None = None


async def play_async(
    client: AsyncLabsClient,
    agent: Agent,
    collection: str,
    scenario: str,
    *,
    episodes: int | None = None,
    seeds: Sequence[int] | None = None,
    concurrency: int = 16,
    max_turns: int | None = None,
    persona: str | None = None,
    split: Split | None = None,
    reward_config: RewardConfigLike | None = None,
    metadata: Mapping[str, Any] | None = None,
    system: SystemPrompt = None,
    progress: Progress | None = None,
) -> Rollouts:
    """Play `episodes` episodes (default: one per seed), at most `concurrency` at a time.

    Raises when not one could be started because all were refused alike, or because the server never answered; and
    what `system` or `progress` raises.
    """
    plan = EpisodePlan(collection, scenario, max_turns, persona, reward_config, metadata, system, split)
    wanted = _seeds(episodes, seeds)
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    room = asyncio.Semaphore(concurrency)
    runner = runner_for(agent, concurrency)
    logs = [_Log() for _ in wanted]
    done = 0

    async def one(seed: int | None, log: _Log) -> Rollout:
        nonlocal done
        async with room:
            rollout = await _played(client, runner, plan, seed, log)
        done += 1
        if progress is not None:
            progress(done, len(wanted), rollout)
        return rollout

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(seed, log)) for seed, log in zip(wanted, logs, strict=True)]
    except ExceptionGroup as failures:
        # What the caller's `system` or `progress` raised, without the group that the tasks put around it.
        raise failures.exceptions[0] from None
    finally:
        await runner.aclose()
    _raise_if_none_could_start(logs, client.connection.url)
    return Rollouts(tuple(task.result() for task in tasks))


def play(
    client: LabsClient,
    agent: Agent,
    collection: str,
    scenario: str,
    *,
    episodes: int | None = None,
    seeds: Sequence[int] | None = None,
    concurrency: int = 16,
    max_turns: int | None = None,
    persona: str | None = None,
    split: Split | None = None,
    reward_config: RewardConfigLike | None = None,
    metadata: Mapping[str, Any] | None = None,
    system: SystemPrompt = None,
    progress: Progress | None = None,
) -> Rollouts:
    """`play_async` for a program that does not `await`; opens its own connections to the same server.

    It may be called where an event loop runs, as in a notebook: it then works in a thread, and the loop waits.
    """

    async def run() -> Rollouts:
        async with async_like(client, connections=concurrency) as other:
            return await play_async(
                other,
                agent,
                collection,
                scenario,
                episodes=episodes,
                seeds=seeds,
                concurrency=concurrency,
                max_turns=max_turns,
                persona=persona,
                split=split,
                reward_config=reward_config,
                metadata=metadata,
                system=system,
                progress=progress,
            )

    try:
        return run_to_end(run)
    except LabsError as error:
        # The server's reason is the last line; the way it took through this package says nothing to a trainer.
        raise error.with_traceback(None) from None


async def play_episode(
    client: AsyncLabsClient, runner: AgentRunner, plan: EpisodePlan, seed: int | None = None
) -> Rollout:
    """Play one episode to its end, or to its error."""
    return await _played(client, runner, plan, seed, _Log())


async def _played(
    client: AsyncLabsClient, runner: AgentRunner, plan: EpisodePlan, seed: int | None, log: _Log
) -> Rollout:
    try:
        error = await _play(client, runner, plan, seed, log)
    except LabsError as failure:
        log.failure = failure
        error = RolloutError(failure.code, failure.message)
    except asyncio.CancelledError:
        if log.episode_id is not None and log.terminal_reason is None:
            await _abandon(client, log.episode_id)
        raise
    if error is not None and log.episode_id is not None and log.terminal_reason is None:
        await _abandon(client, log.episode_id)
    return Rollout(
        collection=plan.collection,
        scenario=plan.scenario,
        seed=seed,
        episode_id=log.episode_id,
        messages=tuple(log.messages),
        rewards=tuple(log.rewards),
        scores=log.scores,
        terminal_reason=log.terminal_reason,
        error=error,
        tools=log.tools,
    )


async def _play(
    client: AsyncLabsClient, runner: AgentRunner, plan: EpisodePlan, seed: int | None, log: _Log
) -> RolloutError | None:
    episode = await _begin(client, plan, seed, log)
    log.tools = tuple(episode.tools)
    system = plan.system(episode) if callable(plan.system) else plan.system
    if system is not None:
        log.messages.append({"role": "system", "content": system})
    observation = episode.initial_observation.content
    log.messages.append({"role": "user", "content": observation})
    while log.terminal_reason is None:
        try:
            reply = await runner(copy.deepcopy(log.messages))
        except Exception as error:  # noqa: BLE001 - the agent is the trainer's code: its failure is this episode's
            return RolloutError("agent_failed", f"The agent failed: {type(error).__name__}: {error}")
        # The persona's last line goes along: should our view and the server's log differ, the server says so.
        answer = await client.turn(episode.episode_id, [{"role": "user", "content": observation}, reply.message()])
        observation = answer.observation.content
        log.messages.append(reply.message())
        log.messages.append({"role": "user", "content": observation})
        log.rewards.append(answer.reward)
        log.scores = answer.scores
        if answer.episode_complete:
            log.terminal_reason = answer.terminal_reason or "completed"
    if log.terminal_reason == "error":
        return RolloutError("episode_error", "The server ended the episode with an error.")
    return None


async def _begin(client: AsyncLabsClient, plan: EpisodePlan, seed: int | None, log: _Log) -> CreateEpisodeResponse:
    creating = asyncio.create_task(
        client.create_episode(
            plan.collection,
            plan.scenario,
            seed=seed,
            max_turns=plan.max_turns,
            observation_role="user",
            persona=plan.persona,
            split=plan.split,
            metadata=plan.metadata,
            reward_config=plan.reward_config,
        )
    )
    try:
        episode = await asyncio.shield(creating)
    except asyncio.CancelledError:
        # The server may have begun it already: only with its answer is there an episode that can be ended.
        with contextlib.suppress(TimeoutError, LabsError):
            log.episode_id = (await asyncio.wait_for(creating, ABANDON_WITHIN_S)).episode_id
        raise
    log.episode_id = episode.episode_id
    return episode


def _raise_if_none_could_start(logs: Sequence[_Log], url: str) -> None:
    """Raise the first failure if nothing began and asking again would not help: a list of errors would hide it."""
    failures = [log.failure for log in logs if log.failure is not None and log.episode_id is None]
    if not failures or len(failures) < len(logs):
        return
    refused_alike = len({failure.code for failure in failures}) == 1 and not failures[0].retryable
    unreachable = all(isinstance(failure, ConnectionFailed | DeadlineExceeded) for failure in failures)
    if refused_alike or unreachable:
        failures[0].add_note(f"None of the {len(logs)} episodes could be started at {url}.")
        raise failures[0].with_traceback(None) from None


async def _abandon(client: AsyncLabsClient, episode_id: str) -> None:
    """End an episode nobody will continue; that it failed already is what the caller reports."""
    with contextlib.suppress(LabsError):
        await client.with_options(deadline_s=ABANDON_WITHIN_S).delete_episode(episode_id)


def _seeds(episodes: int | None, seeds: Sequence[int] | None) -> list[int | None]:
    if seeds is None:
        if episodes is None or episodes < 0:
            raise ValueError("say how many `episodes`, or give their `seeds`")
        return [None] * episodes
    if episodes is not None and episodes != len(seeds):
        raise ValueError(f"{episodes} episodes but {len(seeds)} seeds")
    return list(seeds)
