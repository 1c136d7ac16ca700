"""The next batch is played while the present one is learned from (`rollout.max_staleness = 1`).

It is played by a copy of the weights as they were before the update, so it is one update old when its turn comes, and
what it holds depends on nothing but the run: a run that was interrupted goes on with the batch that was waiting.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from learner.generate.hf import HfGenerator
from learner.model import Policy
from learner.rollout import Collected
from learner.types import Group, Segment, Trajectory

FILE = "queue.json"


@dataclass(frozen=True)
class Batch:
    """The groups of one update, and how they came about."""

    step: int
    collected: Collected
    refills: int
    version: int
    """Updates that the policy that played it had made."""


class Ahead:
    """Holds at most one batch, or the task that plays it."""

    def __init__(
        self,
        play: Callable[[int], Awaitable[tuple[Collected, int]]],
        refresh: Callable[[], None],
        waiting: Batch | None,
    ) -> None:
        self._play = play
        self._refresh = refresh
        self._waiting = waiting
        self._task: asyncio.Task[Batch] | None = None

    def begin(self, step: int, version: int) -> None:
        """Play the batch of an update with the present weights, beside whatever comes next."""
        self._refresh()
        self._task = asyncio.create_task(self._played(step, version))

    async def take(self, step: int, version: int) -> Batch:
        """The batch of an update."""
        if self._waiting is None and self._task is None:
            self.begin(step, version)
        batch = await self.settle()
        if batch is None or batch.step != step:
            raise ValueError(f"the batch that waits is not that of update {step}")
        self._waiting = self._task = None
        return batch

    async def settle(self) -> Batch | None:
        """Wait for what is being played; the batch that waits, if there is one."""
        if self._task is not None:
            self._waiting = await self._task
        return self._waiting

    async def close(self) -> None:
        """Leave what is being played."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _played(self, step: int, version: int) -> Batch:
        collected, refills = await self._play(step)
        return Batch(step, collected, refills, version)


def copy_of(policy: Policy, max_tokens: int) -> tuple[HfGenerator, Callable[[], None]]:
    """A sampler with weights of its own, and what makes them the present ones."""
    stale = Policy(
        copy.deepcopy(policy.model).requires_grad_(requires_grad=False),
        end_id=policy.end_id,
        banned=policy.banned.tolist(),
        temperature=policy.temperature,
        autocast=policy.autocast,
    )

    @torch.no_grad()
    def refresh() -> None:
        stale.model.load_state_dict(policy.model.state_dict())

    return HfGenerator(stale, max_tokens=max_tokens), refresh


def save_batch(folder: Path, batch: Batch) -> None:
    """Put it beside the weights."""
    (folder / FILE).write_text(json.dumps(dataclasses.asdict(batch)))


def load_batch(folder: Path) -> Batch | None:
    """What waited when the checkpoint was written."""
    path = folder / FILE
    if not path.exists():
        return None
    plain = json.loads(path.read_text())
    collected = plain.pop("collected")
    groups = tuple(_group(each) for each in collected.pop("groups"))
    return Batch(collected=Collected(groups, **collected), **plain)


def _group(plain: dict[str, Any]) -> Group:
    return Group(
        **{
            **plain,
            "trajectories": tuple(_trajectory(each) for each in plain["trajectories"]),
            "error_codes": tuple(plain["error_codes"]),
        }
    )


def _trajectory(plain: dict[str, Any]) -> Trajectory:
    segments = tuple(
        Segment(tuple(each["ids"]), None if each["logp"] is None else tuple(each["logp"]), each["fork"])
        for each in plain["segments"]
    )
    return Trajectory(**{**plain, "segments": segments, "turn_rewards": tuple(plain["turn_rewards"])})
