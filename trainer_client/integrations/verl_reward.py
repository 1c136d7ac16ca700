"""verl's reward manager scores single replies by Labs' rubrics. Written for verl 0.9.1.

For data whose rows are conversations so far (`prompt`, the person as `user`), with the scenario as `data_source`
(`collection/scenario`). Rollouts of `integrations.verl` bring their rewards themselves.

    reward.reward_manager.source=importlib
    reward.reward_manager.name=LabsRewardManager
    reward.reward_manager.module.path=pkg://trainer_client.integrations.verl_reward

LABS_URL and LABS_API_KEY say where the server is. A reply without a reward is an error, which ends the run: never 0.
"""

from __future__ import annotations

from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from trainer_client.async_client import AsyncLabsClient
from trainer_client.chat.thoughts import aloud
from trainer_client.integrations.episodes import PATIENCE_S
from trainer_client.retry import RetryPolicy


class LabsRewardManager(RewardManagerBase):  # type: ignore[misc]
    """Asks `/evaluate` for each reply; many at once, as verl does."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self._client: AsyncLabsClient | None = None

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of the conversation with the reply, and its dimensions as `labs_scores`."""
        item = data[-1]
        row = item.non_tensor_batch
        collection, _, scenario = str(row["data_source"]).partition("/")
        if not scenario:
            raise ValueError(f"`data_source` is {row['data_source']!r}; name the scenario: collection/scenario")
        said = [*map(dict, row["raw_prompt"]), {"role": "assistant", "content": self._reply(item)}]
        messages = [each for each in said if each["role"] != "system"]
        if self._client is None:
            self._client = AsyncLabsClient(
                retry=RetryPolicy(attempts=10_000, deadline_s=PATIENCE_S, longest_pause_s=5.0)
            )
        found = await self._client.evaluate(collection, scenario, messages)
        return {"reward_score": found.reward, "reward_extra_info": {"labs_scores": dict(found.scores or {})}}

    async def close(self) -> None:
        """Close the connections; a process that ends does so by itself."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _reply(self, item: Any) -> str:
        ids = item.batch["responses"]
        length = int(item.batch["attention_mask"][-ids.shape[-1] :].sum())
        return aloud(self.tokenizer.decode(ids[:length], skip_special_tokens=True))
