"""Episodes of an evaluation as JSON lines: to be read, or to be learned from (`messages` are as `sft` takes them)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learner.retry import OutageRetryPolicy
from learner.rollout import Collected, RolloutStage
from trainer_client import AsyncLabsClient, Rollout
from trainer_client.chat.tools import for_template, in_chat

AT_ONCE = 16
Record = Mapping[str, Any]


async def of_collected(client: AsyncLabsClient, collected: Collected, stages: Sequence[RolloutStage]) -> list[Record]:
    """Of episodes that were played here: what was said is on the server. `stages` says where each group was played."""
    room, retry_policy = asyncio.Semaphore(AT_ONCE), OutageRetryPolicy()

    async def one(episode_id: str) -> list[Any]:
        async with room:
            episode = await retry_policy.ask(lambda _: client.get_episode(episode_id))
            return [message.model_dump(exclude_none=True) for message in episode.messages]

    ids = [each.episode_id for each in collected.trajectories]
    logs = dict(zip(ids, await asyncio.gather(*map(one, ids)), strict=True))
    records: list[Record] = []
    for group, stage in zip(collected.groups, stages, strict=True):
        where = {"scenario": stage.name, "seed": group.seed}
        system = [{"role": "system", "content": stage.system}] if stage.system else []
        records += [
            {
                **where,
                "episode_id": each.episode_id,
                "reward": each.reward,
                "rewards": each.turn_rewards,
                "scores": each.scores,
                "terminal_reason": each.terminal_reason,
                "messages": [*system, *in_chat(logs[each.episode_id])],
            }
            for each in group.trajectories
        ]
        records += [
            {**where, "error": {"code": code, "message": group.error_messages.get(code, "")}}
            for code in group.error_codes
        ]
    return records


def of_rollout(rollout: Rollout) -> Record:
    """Of an episode that an endpoint has played."""
    where = {"scenario": f"{rollout.collection}/{rollout.scenario}", "seed": rollout.seed}
    if rollout.error is not None:
        return {**where, "error": {"code": rollout.error.code, "message": rollout.error.message}}
    tools = {"tools": for_template(rollout.tools)} if rollout.tools else {}
    return {
        **where,
        "episode_id": rollout.episode_id,
        "reward": rollout.reward,
        "rewards": rollout.rewards,
        "scores": rollout.scores or {},
        "terminal_reason": rollout.terminal_reason,
        "messages": in_chat(rollout.messages),
        **tools,
    }


def write(records: Sequence[Record], path: Path) -> None:
    """One line for each episode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
