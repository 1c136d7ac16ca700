"""Environments to build with: where an agent speaks, somebody answers, and a reward comes back.

An environment is one conversation. `reset` begins it and returns the first line that the agent hears; `step` takes the
agent's turn. `run_episode` plays an agent in one; `learner` trains in them (docs/build-your-own.md).
"""

from __future__ import annotations

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer_client.agent import ChatMessage, ReplyLike, SyncAgent, as_reply
from trainer_client.client import LabsClient
from trainer_client.errors import LabsError
from trainer_client.rewards.base import (
    Conversation,
    RewardContext,
    RewardFunction,
    RewardResult,
    Scored,
    as_reward,
)
from trainer_client.rewards.judged import TaskCompletionReward
from trainer_client.rewards.server import ServerReward


@dataclass(frozen=True)
class Step:
    """The outcome of the agent's turn."""

    observation: str
    """What the other side says."""
    result: RewardResult
    """The reward of the conversation so far."""
    done: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reward(self) -> float:
        """The number alone, in [0, 1]."""
        return self.result.reward


class Environment(ABC):
    """One conversation at a time. `messages` is the conversation so far, as chat templates take it."""

    tools: tuple[Any, ...] = ()
    """Definitions of the tools that the agent may call (`wire.ToolDefinition`)."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []

    @abstractmethod
    def reset(self, seed: int | None = None) -> str:
        """Begin a conversation; returns the first line that the agent hears."""

    @abstractmethod
    def step(self, reply: ReplyLike) -> Step:
        """Take the agent's turn."""

    def close(self) -> None:  # noqa: B027 - nothing to end is the usual case
        """End what the environment holds; it may be called twice."""


class ConversationEnvironment(Environment):
    """The other side is a function from messages to text, and the reward is yours. It needs no server."""

    def __init__(
        self,
        partner: Callable[[Conversation], str],
        reward: RewardFunction | Callable[[Conversation], Scored],
        *,
        opening: str | Callable[[int | None], str] = "Hello.",
        max_turns: int = 8,
    ) -> None:
        """`opening`: the first line, or a function of the seed. `partner` returns an empty text to end."""
        super().__init__()
        if max_turns < 1:
            raise ValueError("max_turns is at least 1")
        self._partner, self._reward = partner, as_reward(reward)
        self._opening, self.max_turns = opening, max_turns
        self._turns = 0

    def reset(self, seed: int | None = None) -> str:
        """Begin a conversation with the opening."""
        first = self._opening(seed) if callable(self._opening) else self._opening
        self.messages, self._turns = [{"role": "user", "content": first}], 0
        return first

    def step(self, reply: ReplyLike) -> Step:
        """Take the agent's turn, ask the partner, and score the conversation."""
        if not self.messages:
            raise RuntimeError("call reset() first")
        self.messages.append(as_reply(reply).message())
        self._turns += 1
        heard = self._partner(self.messages)
        if heard:
            self.messages.append({"role": "user", "content": heard})
        result = self._reward.score(self.messages, RewardContext())
        return Step(heard, result, done=self._is_done(heard, result))

    def _is_done(self, heard: str, result: RewardResult) -> bool:
        return not heard or self._turns >= self.max_turns


class TaskEnvironment(ConversationEnvironment):
    """A conversation with a goal: it ends when the check says that the goal is reached, with reward 1."""

    def __init__(
        self,
        partner: Callable[[Conversation], str],
        goal: str,
        check: Callable[[Conversation], bool | float],
        *,
        opening: str | Callable[[int | None], str] = "Hello.",
        max_turns: int = 8,
    ) -> None:
        super().__init__(partner, TaskCompletionReward(goal, check=check), opening=opening, max_turns=max_turns)
        self.goal = goal

    def _is_done(self, heard: str, result: RewardResult) -> bool:
        return result.reward >= 1.0 or super()._is_done(heard, result)


class SimulatedEnvironment(Environment):
    """An episode on a Labs server: the persona answers, and the reward is the server's or yours.

    A reward of your own sees the server's through `ServerReward`.
    """

    def __init__(
        self,
        client: LabsClient,
        collection: str,
        scenario: str,
        *,
        reward: RewardFunction | Callable[[Conversation], Scored] | None = None,
        max_turns: int | None = None,
    ) -> None:
        super().__init__()
        self._client, self._place, self.max_turns = client, (collection, scenario), max_turns
        self._reward = ServerReward() if reward is None else as_reward(reward)
        self.episode_id: str | None = None

    def reset(self, seed: int | None = None) -> str:
        """Begin an episode; the same seed gives the same persona."""
        self.close()
        begun = self._client.create_episode(*self._place, seed=seed, max_turns=self.max_turns, observation_role="user")
        self.episode_id, self.tools = begun.episode_id, tuple(begun.tools)
        first = begun.initial_observation.content
        self.messages = [{"role": "user", "content": first}]
        return first

    def step(self, reply: ReplyLike) -> Step:
        """Play the agent's turn on the server.

        Raises:
            LabsError: the server refuses the turn or cannot answer it.
        """
        if self.episode_id is None:
            raise RuntimeError("call reset() first")
        said = as_reply(reply).message()
        answer = self._client.turn(self.episode_id, [self.messages[-1], said])
        self.messages += [said, {"role": "user", "content": answer.observation.content}]
        context = RewardContext(answer.reward, answer.scores or {}, *self._place)
        result = self._reward.score(self.messages, context)
        if answer.episode_complete:
            self.episode_id = None
        info = {"server_reward": answer.reward, "terminal_reason": answer.terminal_reason}
        return Step(answer.observation.content, result, done=answer.episode_complete, info=info)

    def close(self) -> None:
        """End the episode if it goes on."""
        episode_id, self.episode_id = self.episode_id, None
        if episode_id is not None:
            with contextlib.suppress(LabsError):
                self._client.delete_episode(episode_id)


@dataclass(frozen=True)
class Played:
    """A conversation that an agent played in an environment."""

    messages: tuple[ChatMessage, ...]
    results: tuple[RewardResult, ...]
    """After each of the agent's turns."""

    @property
    def reward(self) -> float:
        """Of the whole conversation."""
        return self.results[-1].reward


def run_episode(agent: SyncAgent, environment: Environment, seed: int | None = None) -> Played:
    """Play one conversation to its end with a plain function (messages in, text out) as the agent."""
    if inspect.iscoroutinefunction(agent):
        raise TypeError("run_episode takes a plain function; play_async takes coroutine functions")
    environment.reset(seed)
    results = []
    try:
        done = False
        while not done:
            step = environment.step(agent(list(environment.messages)))
            results.append(step.result)
            done = step.done
    finally:
        environment.close()
    return Played(tuple(environment.messages), tuple(results))
