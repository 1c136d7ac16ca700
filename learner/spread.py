"""A run whose weights are spread over its processes, by FSDP2 or by DeepSpeed (`parallel.kind`).

Each process also keeps one whole copy of the weights, without gradients: it samples, and is what is saved. So a
checkpoint looks as that of one process, and a run may go on with another number of processes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from learner.config import Config
from learner.critic import Critic
from learner.lora import BasePolicy
from learner.model import Policy
from learner.ranks import Ranks
from learner.steps import Stepper
from learner.update import Updater


def spread(config: Config, updater: Updater, policy: Policy, reference: Policy | None, critic: Critic | None) -> Policy:
    """Give every process its part of what all of them hold; returns the whole copy."""
    copied = copy.deepcopy(policy.model).requires_grad_(requires_grad=False)
    whole = _sampler(policy, copied)
    spreads_weights = config.parallel.kind == "fsdp" or config.parallel.zero_stage == 3
    if reference is not None and not isinstance(reference, BasePolicy) and spreads_weights:
        from learner.sharding import shard

        shard(reference.model, updater.ranks)
    stepper = _spread(config, updater.ranks, policy.model, updater.stepper)
    critic_stepper = None
    if critic is not None and updater.critic_stepper is not None:
        critic_stepper = _spread(config, updater.ranks, critic, updater.critic_stepper)
    updater.use(stepper, critic_stepper, _refresher(policy.model, copied, stepper))
    return whole


def _spread(config: Config, ranks: Ranks, model: nn.Module, stepper: Stepper) -> Stepper:
    """One model, with the state that its optimiser had."""
    if config.parallel.kind == "deepspeed":
        from learner.zero import zero

        return zero(model, stepper, config, ranks)
    from learner.sharding import ShardedStepper, shard

    state = stepper.state()
    shard(model, ranks)
    spread_out = ShardedStepper(stepper.again(model), ranks)
    spread_out.load(state)
    return spread_out


def _sampler(policy: Policy, model: Any) -> Policy:
    return Policy(
        model,
        end_id=policy.end_id,
        banned=policy.banned.tolist(),
        temperature=policy.temperature,
        truncation=policy.truncation,
        autocast=policy.autocast,
    )


def _refresher(trained: nn.Module, copied: nn.Module, stepper: Stepper) -> Callable[[], None]:
    """The function that brings the copy up to date; all processes call it together."""
    wanted = {name for name, parameter in trained.named_parameters() if parameter.requires_grad}
    places = dict(copied.named_parameters())

    @torch.no_grad()
    def refresh() -> None:
        for name, value in stepper.weights(trained):
            if name in wanted:
                places[name].copy_(value)

    return refresh
