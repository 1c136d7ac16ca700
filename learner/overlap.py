"""The next batches are played while the present one is learned from (`rollout.max_staleness`).

Each is played by a copy of the weights as they were so many updates before its turn comes, and what it holds depends on
nothing but the run: a run that was interrupted goes on with the batches that were waiting. A vLLM server is such a
copy: it is sent the weights before a batch is begun, and not while it plays.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from collections.abc import Awaitable, Callable, Sequence
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


@dataclass(frozen=True)
class BatchPlayer:
    """Plays batches with weights of its own."""

    play: Callable[[int], Awaitable[tuple[Collected, int]]]
    """The groups of an update, and how often some were replaced."""
    refresh: Callable[[], float]
    """Makes its weights the present ones; how far its log-probabilities then are from the learner's."""


class PrefetchedBatches:
    """Holds as many batches as there are players, or the tasks that play them."""

    def __init__(self, players: Sequence[BatchPlayer], waiting: Sequence[Batch]) -> None:
        self._players = players
        self._depth = len(players)
        # A batch of which nothing came, in an outage, is played again.
        self._waiting = {batch.step: batch for batch in waiting if batch.collected.trajectories}
        self._tasks: dict[int, asyncio.Task[Batch]] = {}
        self.gap = 0.0
        """Of the last player that got new weights."""

    async def take(self, step: int, version: int, last: int) -> Batch:
        """The batch of an update; another one, as many updates later as there are players, begins to be played.

        `version` is how many updates the present weights have seen, `last` the last update of the run.
        """
        for wanted in range(step, min(step + self._depth, last + 1)):
            self._begin(wanted, version)
        if step in self._tasks:
            self._waiting[step] = await self._tasks.pop(step)
        batch = self._waiting.pop(step)
        if step + self._depth <= last:
            self._begin(step + self._depth, version)
        return batch

    async def settle(self) -> tuple[Batch, ...]:
        """Wait for what is being played; the batches that wait."""
        for step in sorted(self._tasks):
            self._waiting[step] = await self._tasks[step]
            del self._tasks[step]
        return tuple(self._waiting[step] for step in sorted(self._waiting))

    async def close(self) -> None:
        """Leave what is being played."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(self, step: int, version: int) -> None:
        if step in self._waiting or step in self._tasks:
            return
        # By number, not by who is done first: of several processes, the same players play a batch together.
        player = self._players[step % self._depth]
        self.gap = player.refresh()
        self._tasks[step] = asyncio.create_task(self._played(player, step, version))

    async def _played(self, player: BatchPlayer, step: int, version: int) -> Batch:
        collected, refills = await player.play(step)
        return Batch(step, collected, refills, version)


def copy_of(
    policy: Policy, max_tokens: int, check: Callable[[Policy], float], fixed_shapes: bool | None = None
) -> tuple[HfGenerator, Callable[[], float]]:
    """A sampler with weights of its own, and what makes them the present ones; `check` tries whether they are."""
    stale = Policy(
        copy.deepcopy(policy.model).requires_grad_(requires_grad=False),
        end_id=policy.end_id,
        banned=policy.banned.tolist(),
        temperature=policy.temperature,
        truncation=policy.truncation,
        autocast=policy.autocast,
    )

    @torch.no_grad()
    def refresh() -> float:
        stale.model.load_state_dict(policy.model.state_dict())
        return check(stale)

    return HfGenerator(stale, max_tokens=max_tokens, fixed_shapes=fixed_shapes), refresh


def save_batches(folder: Path, batches: Sequence[Batch]) -> None:
    """Put them beside the weights."""
    (folder / FILE).write_text(json.dumps([dataclasses.asdict(batch) for batch in batches]))


def load_batches(folder: Path) -> tuple[Batch, ...]:
    """The batches that waited when the checkpoint was written."""
    path = folder / FILE
    return tuple(_batch(plain) for plain in json.loads(path.read_text())) if path.exists() else ()


def _batch(plain: dict[str, Any]) -> Batch:
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
        Segment(
            tuple(each["ids"]),
            None if each["logp"] is None else tuple(each["logp"]),
            each["fork"],
            None if each.get("support") is None else tuple(map(tuple, each["support"])),
        )
        for each in plain["segments"]
    )
    return Trajectory(**{**plain, "segments": segments, "turn_rewards": tuple(plain["turn_rewards"])})
