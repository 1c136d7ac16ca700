"""verl's agent loops play Labs' scenarios. Written for verl 0.9.1.

Name the loop in a file, `actor_rollout_ref.rollout.agent.agent_loop_config_path=labs.yaml`, and in each row of the data
(`rows` writes them):

    - name: labs
      _target_: trainer_client.integrations.verl.LabsAgentLoop
      max_turns: 12

The reward comes with the rollout (`reward_score`): no reward function is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from trainer_client.chat.tokens import Renderer
from trainer_client.client import LabsClient
from trainer_client.integrations.episodes import CARD, PATIENCE_S, Episodes
from trainer_client.integrations.tasks import Task, dataset_rows
from trainer_client.wire.episodes import Split


def rows(
    client: LabsClient, scenarios: Sequence[str], seeds: Iterable[int], split: Split | None = None
) -> list[dict[str, Any]]:
    """Rows for a Parquet file: `datasets.Dataset.from_list(rows(...)).to_parquet("train.parquet")`."""
    return [
        {
            "prompt": row["prompt"],
            "agent_name": "labs",
            "data_source": row["scenario"],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": number, "seed": row["seed"]},
        }
        for number, row in enumerate(dataset_rows(client, scenarios, seeds, split))
    ]


class LabsAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """A conversation; the persona's tokens, and those of the template and of tools, are masked."""

    def __init__(
        self,
        *arguments: Any,
        base_url: str | None = None,
        api_key: str | None = None,
        max_turns: int | None = None,
        system: str | None = CARD,
        patience_s: float = PATIENCE_S,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._episodes = Episodes(base_url, api_key, max_turns=max_turns, system=system, patience_s=patience_s)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play the episode that the row names; raises where it has no reward."""
        plain = Renderer(self.tokenizer, options=dict(self.apply_chat_template_kwargs))
        [episode] = await asyncio.to_thread(self._episodes.start, [Task.read(list(row["raw_prompt"]))])
        renderer = plain.within(episode.system, episode.tools)
        prompt = renderer.opening(episode.heard[0])
        room, response, mask, logprobs = self.rollout_config.response_length, [], [], []  # type: ignore[var-annotated]
        request = uuid4().hex
        while episode.live and len(response) < room:
            output = await self.server_manager.generate(
                request_id=request, prompt_ids=prompt + response, sampling_params=sampling_params
            )
            token_ids = list(output.token_ids)[: room - len(response)]
            response += token_ids
            mask += [1] * len(token_ids)
            logprobs += list(output.log_probs or [])[: len(token_ids)]
            turn = [(episode, renderer.spoken(token_ids).text)]
            await asyncio.to_thread(self._episodes.say, turn, opened=renderer.opens_thought)
            if episode.error is not None:
                raise RuntimeError(f"the episode has no reward: {episode.error}")
            ended = bool(token_ids) and token_ids[-1] == renderer.end_id
            after = renderer.suffix(episode.heard[-1], ended=ended, results=episode.results)
            if not episode.live or len(response) + len(after) >= room:
                break
            response += after
            mask += [0] * len(after)
            logprobs += [0.0] * len(after)
        await asyncio.to_thread(self._episodes.abandon, [episode])
        return AgentLoopOutput(
            prompt_ids=prompt,
            response_ids=response,
            response_mask=mask,
            response_logprobs=logprobs if len(logprobs) == len(response) else None,
            reward_score=episode.reward,
            num_turns=len(episode.messages),
            metrics={},
            extra_fields={
                "turn_scores": list(episode.rewards),
                "labs_scores": dict(episode.scores),
                "labs_episode_id": episode.episode_id,
            },
        )
