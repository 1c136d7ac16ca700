"""Several processes that make one update: each plays a share of the groups and computes a share of the gradient.

All of them hold all groups of a batch, so that advantages, denominators and decisions are those of a single process;
gradients are sums over tokens with the denominators of the whole step, so they add up. `torchrun` starts the processes;
without it there is one, and nothing here does anything.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import distributed

from learner.display import Now, silent
from learner.rollout import BatchCollector, Collected, RolloutStage

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """The number of this process, of how many."""

    rank: int = 0
    world: int = 1
    channel: Any = None
    """The group of torch.distributed over which they talk; None: the one of the update."""

    @property
    def first(self) -> bool:
        """True if this one writes and speaks."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """This process's share of a list."""
        return items[self.rank :: self.world]

    def gather(self, item: T) -> list[T]:
        """Gather a value from each process, in the order of ranks."""
        if self.world == 1:
            return [item]
        found: list[Any] = [None] * self.world
        distributed.all_gather_object(found, item, group=self.channel)
        return found

    async def gathered(self, item: T) -> list[T]:
        """The same, while this process does other things."""
        if self.world == 1:
            return [item]
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[T]] = loop.create_future()

        def settle(found: list[T] | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if found is None:
                answer.set_exception(error or RuntimeError("the other processes gave no answer"))
            else:
                answer.set_result(found)

        def wait() -> None:
            found, error = None, None
            try:
                found = self.gather(item)
            except RuntimeError as failed:  # what torch raises when another process is gone
                error = failed
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, found, error)

        # A daemon: where the run ends with an error, nobody waits for the other processes.
        threading.Thread(target=wait, daemon=True).start()
        return await answer

    def apart(self) -> Ranks:
        """The same processes with a channel of their own, for what runs beside the update; all ask together."""
        return self if self.world == 1 else replace(self, channel=distributed.new_group(backend="gloo"))

    def agree(self, decision: bool) -> bool:
        """The decision of the first process."""
        return self.gather(decision)[0]

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            distributed.barrier()

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Make every gradient the sum over the processes; one that none of them has stays absent."""
        if self.world == 1:
            return
        listed = list(parameters)
        present = self.gather([each.grad is not None for each in listed])
        for number, parameter in enumerate(listed):
            if not any(row[number] for row in present):
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            distributed.all_reduce(parameter.grad)

    def sum_figures(self, figures: Mapping[str, float], largest: Sequence[str]) -> dict[str, float]:
        """Figures added up, those named in `largest` at their largest."""
        out: dict[str, float] = {}
        for part in self.gather(dict(figures)):
            for name, value in part.items():
                out[name] = max(out.get(name, 0.0), value) if name in largest else out.get(name, 0.0) + value
        return out


def join_ranks(device: str) -> Ranks:
    """The place that `torchrun` gave this process; one of one without it."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks()
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return Ranks(distributed.get_rank(), world)


def leave_ranks() -> None:
    """To be called at the end."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def device_of(device: str) -> str:
    """The GPU of this process, where `cuda` alone is asked for."""
    local = os.environ.get("LOCAL_RANK")
    return f"cuda:{local}" if device == "cuda" and local is not None else device


class SharedCollector:
    """Each process plays its share of the seeds; all of them get all groups."""

    def __init__(self, inner: BatchCollector, ranks: Ranks) -> None:
        self._inner = inner
        self._ranks = ranks

    async def collect(
        self,
        seeds: Sequence[int],
        group_size: int,
        noise: tuple[int, ...],
        now: Now = silent,
        stages: Sequence[RolloutStage] | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> Collected:
        """As of any collector, in the order of the seeds."""
        numbers = list(range(len(seeds))) if numbers is None else numbers
        mine = self._ranks.share(range(len(seeds)))
        found = await self._inner.collect(
            [seeds[place] for place in mine],
            group_size,
            noise,
            now,
            None if stages is None else [stages[place] for place in mine],
            numbers=[numbers[place] for place in mine],
        )
        parts = await self._ranks.gathered(found)
        groups = [parts[place % self._ranks.world].groups[place // self._ranks.world] for place in range(len(seeds))]
        return Collected(tuple(groups), max(each.seconds for each in parts), max(each.generating_s for each in parts))
