"""OpenRLHF's agents play Labs' scenarios. Written for OpenRLHF 0.11.2.

Put this into a file and pass it as `--agent_func_path`; `rows` writes the data for it:

    from trainer_client.integrations.openrlhf import executor_for
    AgentExecutor = executor_for("path/to/the/model")

OpenRLHF adds up the rewards of turns, so each turn brings what it has added to the conversation's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trainer_client.chat.tokens import Renderer
from trainer_client.client import LabsClient
from trainer_client.integrations.episodes import Episode, Episodes
from trainer_client.integrations.tasks import Task, dataset_rows
from trainer_client.wire.episodes import Split


class FloatWithItem(float):
    """A number that OpenRLHF asks for its `item`, as it does a tensor."""

    def item(self) -> float:
        """Itself."""
        return float(self)


def rows(
    client: LabsClient, scenarios: Sequence[str], seeds: Iterable[int], path: Path, split: Split | None = None
) -> None:
    """Write the data: `--data.input_key prompt --data.label_key label`."""
    dataset = dataset_rows(client, scenarios, seeds, split)
    path.write_text("".join(json.dumps({**row, "prompt": row["label"]}) + "\n" for row in dataset))


def executor_for(model: str, *, template_options: dict[str, Any] | None = None, **options: Any) -> type[Any]:
    """An `AgentExecutor` for the model of this folder or name; `options` are those of `Episodes`."""
    from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

    episodes = Episodes(**options)
    renderers: list[Renderer] = []

    def renderer() -> Renderer:
        if not renderers:
            from transformers import AutoTokenizer

            tokenizer: Any = AutoTokenizer.from_pretrained(model)
            renderers.append(Renderer(tokenizer, options=template_options))
        return renderers[0]

    class Conversation(AgentInstanceBase):  # type: ignore[misc]
        """One conversation."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self.episode: Episode
            self.renderer: Renderer

        async def reset(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
            """The first prompt, in place of the line that names the task."""
            plain = await asyncio.to_thread(renderer)
            [self.episode] = await asyncio.to_thread(episodes.start, [Task.read(states["label"])])
            self.renderer = plain.within(self.episode.system, self.episode.tools)
            return {"observation": self.renderer.text(self.renderer.opening(self.episode.heard[0]))}

        async def step(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
            """Play the turn; return the persona's answer and what the turn added to the reward."""
            episode, said = self.episode, states["action_text"]
            end = self.renderer.end_text
            before = episode.rewards[-1] if episode.rewards else 0.0
            text = said.removesuffix(end)
            turn = [(episode, text)]
            await asyncio.to_thread(episodes.say, turn, opened=self.renderer.opens_thought)
            if episode.error is not None:
                raise RuntimeError(f"the episode has no reward: {episode.error}")
            after = self.renderer.suffix(episode.heard[-1], ended=said.endswith(end), results=episode.results)
            gained = FloatWithItem(episode.rewards[-1] - before)
            return {
                "rewards": gained,
                "scores": FloatWithItem(episode.rewards[-1]),
                "environment_feedback": self.renderer.text(after) if episode.live else "",
                "done": not episode.live,
                "sampling_params": states.get("sampling_params"),
                "extra_logs": {name: FloatWithItem(value) for name, value in episode.scores.items()},
            }

    class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc]
        """The class that OpenRLHF loads from the file."""

        def __init__(self) -> None:
            super().__init__(Conversation)

    return AgentExecutor
