"""A taskset of verifiers, which prime-rl trains on: the persona is the user, host-side. Written for verifiers 0.4.0.

    [env.taskset]
    id = "trainer_client.integrations.verifiers"
    base_url = "http://127.0.0.1:8321"          # the key is read from LABS_API_KEY
    scenarios = ["clinical-intake/tired-and-dizzy"]
    seeds = 64

Tools are described in the system prompt, and calls are read from the policy's text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from trainer_client.chat.tools import in_words
from trainer_client.client import LabsClient
from trainer_client.integrations.episodes import CARD, Episodes
from trainer_client.integrations.tasks import Task, dataset_rows
from trainer_client.wire.episodes import Split

__all__ = ["LabsConfig", "LabsData", "LabsEnv", "LabsEnvConfig", "LabsTask", "LabsTaskset"]


class LabsData(vf.TaskData):  # type: ignore[misc]
    """An episode that is to be played."""

    line: str
    base_url: str | None = None
    max_turns: int | None = None


class LabsConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The choice of episodes."""

    base_url: str | None = None
    """Else LABS_URL."""
    scenarios: list[str] = Field(default_factory=lambda: ["clinical-intake"])
    """`collection/scenario`, or a collection for all of its scenarios."""
    seeds: int = 64
    first_seed: int = 0
    split: Split | None = None
    """Of scenarios with variants: `train` or `eval`; else all variants."""
    max_turns: int | None = None


class LabsTask(vf.Task[LabsData]):  # type: ignore[misc]
    """One of them."""


class LabsEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """The player of the episodes."""

    player: vf.AgentConfig = vf.AgentConfig()


class LabsEnv(vf.Env[LabsEnvConfig]):  # type: ignore[misc]
    """Plays an episode with the policy's turns; the reward is the server's, and dimensions are metrics."""

    async def run(self, task: Any, agents: Any) -> None:
        """One episode; raises where it has no reward."""
        data: LabsData = task.data
        episodes = Episodes(data.base_url, max_turns=data.max_turns, system=CARD)
        [episode] = await asyncio.to_thread(episodes.start, [Task.read(data.line)])
        opening = episode.heard[0]
        if episode.tools:
            opening = f"{in_words(episode.tools)}\n\n{opening}"
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn(opening)
            while not segment.terminated:
                turn = [(episode, segment.last_reply)]
                await asyncio.to_thread(episodes.say, turn)
                if not episode.live:
                    break
                segment = await interaction.turn(episode.heard[-1])
            await asyncio.to_thread(episodes.abandon, [episode])
        if episode.reward is None:
            raise RuntimeError(f"the episode has no reward: {episode.error or 'the policy said nothing'}")
        trace = interaction.trace
        trace.record_reward("labs", episode.reward)
        for name, score in episode.scores.items():
            trace.record_metric(f"labs/{name}", score)
        for turn_number, reward in enumerate(episode.rewards, 1):
            trace.record_metric(f"labs/turn_{turn_number}", reward)


class LabsTaskset(vf.Taskset[LabsTask, LabsConfig]):  # type: ignore[misc]
    """A task for each scenario and seed."""

    def load(self) -> Iterator[LabsTask]:
        """All of them."""
        config = self.config
        with LabsClient(config.base_url) as client:
            cards = {
                f"{collection.slug}/{each.slug}": f"{each.name}. {each.description}"
                for collection in client.catalog().collections
                for each in collection.scenarios
            }
            seeds = range(config.first_seed, config.first_seed + config.seeds)
            rows = dataset_rows(client, config.scenarios, seeds, config.split)
        for row in rows:
            yield LabsTask(
                LabsData(
                    name=row["label"],
                    prompt=None,
                    system_prompt=cards[row["scenario"]],
                    line=row["label"],
                    base_url=config.base_url,
                    max_turns=config.max_turns,
                ),
                config.task,
            )
