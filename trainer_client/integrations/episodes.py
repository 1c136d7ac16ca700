"""Episodes that a foreign trainer's policy plays: its text in, the persona's answer and the reward out.

Made in one process and used in another (`fork`, a worker of torch or Ray) it opens connections of its own there. A
server that is restarted is waited for. A failed episode has an error and no reward.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from trainer_client.chat.thoughts import aloud
from trainer_client.chat.tools import Result, for_template, message_of, results_of
from trainer_client.client import LabsClient
from trainer_client.errors import LabsError
from trainer_client.integrations.tasks import Task
from trainer_client.retry import RetryPolicy
from trainer_client.wire import MAX_BATCH_ITEMS, FailedTurn, Message

PATIENCE_S = 600.0
CARD = "card"
"""System prompt: the scenario's public name and description."""


@dataclass
class Episode:
    """One conversation, as it stands."""

    task: Task
    episode_id: str = ""
    system: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    """In OpenAI's form."""
    heard: list[str] = field(default_factory=list)
    """The persona's lines."""
    messages: list[Message] = field(default_factory=list)
    """The conversation as the server has it, which `/evaluate` gives the same reward."""
    results: tuple[Result, ...] = ()
    """Of the tool calls in the last turn."""
    rewards: list[float] = field(default_factory=list)
    """Of the conversation so far, after each turn."""
    scores: dict[str, float] = field(default_factory=dict)
    """By dimension, after the last turn."""
    terminal_reason: str | None = None
    error: str | None = None
    """Why there is no reward."""

    @property
    def live(self) -> bool:
        """True if the policy speaks next."""
        return self.terminal_reason is None and self.error is None

    @property
    def reward(self) -> float | None:
        """Of the whole conversation; None if there is none."""
        return self.rewards[-1] if self.rewards and self.error is None else None


class Episodes:
    """Starts episodes and plays turns in them, many in one request."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        max_turns: int | None = None,
        system: str | None = CARD,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Address and key: else LABS_URL and LABS_API_KEY. `system`: `card`, a text, or None."""
        self._given = (base_url, api_key)
        self._max_turns = max_turns
        self._system = system
        self._retry = RetryPolicy(attempts=10_000, deadline_s=patience_s, longest_pause_s=5.0)
        self._client: LabsClient | None = None
        self._process = 0

    @property
    def client(self) -> LabsClient:
        """Of this process: connections of a parent are not shared with it."""
        if self._client is None or self._process != os.getpid():
            self._client, self._process = LabsClient(*self._given, retry=self._retry), os.getpid()
            # Trainers drop an environment without a word: its connections end with it.
            weakref.finalize(self, _close, self._client, self._process)
        return self._client

    def __getstate__(self) -> dict[str, Any]:
        """Without connections."""
        return {**self.__dict__, "_client": None}

    def start(self, tasks: Sequence[Task]) -> list[Episode]:
        """An episode for each; raises LabsError where the server refuses."""
        episodes = [Episode(task) for task in tasks]
        for part in _parts(episodes):
            items = [
                {
                    "collection_slug": each.task.collection,
                    "scenario_slug": each.task.scenario,
                    "config": {
                        "seed": each.task.seed,
                        "max_turns": self._max_turns,
                        "observation_role": "user",
                        "split": each.task.split,
                    },
                }
                for each in part
            ]
            for episode, answer in zip(part, self.client.start_episodes(items), strict=True):
                episode.episode_id = answer.episode_id
                episode.tools = for_template(answer.tools)
                episode.heard = [answer.initial_observation.content]
                episode.messages = [Message(role="user", content=episode.heard[0])]
                card = None if answer.scenario is None else f"{answer.scenario.name}. {answer.scenario.description}"
                episode.system = card if self._system == CARD else self._system
        return episodes

    def say(self, turns: Sequence[tuple[Episode, str]], *, opened: bool = False) -> None:
        """Play the policy's turns, each in another episode; what came of them is in the episodes.

        Thoughts are left out, and calls of tools are read from the text. `opened`: texts begin within a thought.
        """
        spoken = []
        for episode, text in turns:
            try:
                episode.messages.append(message_of(aloud(text, opened=opened)))
            except ValidationError:
                episode.error = "turn_too_long: the server does not accept turns as long as the policy's"
            else:
                spoken.append(episode)
        for part in _parts(spoken):
            items = [{"episode_id": each.episode_id, "messages": each.messages[-2:]} for each in part]
            try:
                answers = self.client.batch_turns(items)
            except LabsError as error:
                for each in part:
                    each.error = f"{error.code}: {error.explanation}"
                continue
            for episode, answer in zip(part, answers, strict=True):
                if isinstance(answer, FailedTurn):
                    episode.error = f"{answer.code}: {answer.message}"
                else:
                    _take(episode, answer)

    def abandon(self, episodes: Sequence[Episode]) -> None:
        """End what nobody will go on with."""
        for episode in episodes:
            if episode.live and episode.episode_id:
                self.client.delete_episode(episode.episode_id)
                episode.terminal_reason = "abandoned"


def _close(client: LabsClient, process: int) -> None:
    """Close the connections, in the process that made them alone."""
    if process == os.getpid():
        client.close()


def _take(episode: Episode, answer: Any) -> None:
    episode.results = results_of(episode.messages[-1])
    episode.heard.append(answer.observation.content)
    episode.messages.append(Message(role="user", content=answer.observation.content))
    episode.rewards.append(answer.reward)
    episode.scores = dict(answer.scores or {})
    if answer.terminal_reason == "error":
        episode.error = "episode_error: the server ended the episode with an error"
    elif answer.episode_complete:
        episode.terminal_reason = answer.terminal_reason or "completed"


def _parts(episodes: Sequence[Episode]) -> list[Sequence[Episode]]:
    return [episodes[start : start + MAX_BATCH_ITEMS] for start in range(0, len(episodes), MAX_BATCH_ITEMS)]
