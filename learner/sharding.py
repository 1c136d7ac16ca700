"""Weights, gradients and the optimiser's state in parts, one for each process: FSDP2 of torch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from learner.ranks import Ranks
from learner.steps import Stepper


class ShardedStepper(Stepper):
    """Gradients are added up in the backward pass, each process keeping its part."""

    lockstep = True

    def step(self, clip_norm: float) -> float:
        """As of any stepper."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, clip_norm)
        return self._stepped(float(_whole(norm)))

    def state(self) -> dict[str, Any]:
        """As of any stepper."""
        plain = super().state()
        return {**plain, "state": {number: _each(_whole, entry) for number, entry in plain["state"].items()}}

    def weights(self, module: nn.Module) -> Iterator[tuple[str, Tensor]]:
        """As of any stepper."""
        for name, value in super().weights(module):
            yield name, _whole(value)

    def load(self, state: dict[str, Any]) -> None:
        """As of any stepper."""
        parameters, parts = self.parameters, {}
        for number, entry in state["state"].items():
            parts[number] = _each(functools.partial(_part_of, like=parameters[number]), entry)
        super().load({**state, "state": parts})


def shard(model: nn.Module, ranks: Ranks) -> None:
    """Spread a model's weights over the processes, layer by layer; all of them hold the same ones before."""
    device = next(model.parameters()).device.type
    mesh = init_device_mesh(device, (ranks.world,))
    for layer in [each for each in model.modules() if isinstance(each, GradientCheckpointingLayer)]:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for part in model.modules():
        if isinstance(part, FSDPModule):
            # Each process's loss is its share of that of the step: gradients add up, and are not averaged.
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(enable=True)


def _whole(value: Tensor) -> Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value


def _part_of(value: Tensor, like: Tensor) -> Tensor:
    if not isinstance(like, DTensor) or value.shape != like.shape:
        return value
    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)


def _each(change: Callable[[Tensor], Tensor], entry: dict[str, Any]) -> dict[str, Any]:
    return {name: change(value) if isinstance(value, Tensor) else value for name, value in entry.items()}
