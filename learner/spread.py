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

from learner.lora import BasePolicy
from learner.model import Policy
from learner.run import Run
from learner.steps import Stepper


def spread(run: Run) -> None:
    """Give every process its part of what all of them hold."""
    updater, parallel = run.updater, run.config.parallel
    copied = copy.deepcopy(run.policy.model).requires_grad_(requires_grad=False)
    run.whole = _sampler(run.policy, copied)
    spreads_weights = parallel.kind == "fsdp" or parallel.zero_stage == 3
    if run.reference is not None and not isinstance(run.reference, BasePolicy) and spreads_weights:
        from learner.sharding import shard

        shard(run.reference.model, run.ranks)
    stepper = _spread(run, run.policy.model, updater.stepper)
    critic_stepper = None
    if run.critic is not None and updater.critic_stepper is not None:
        critic_stepper = _spread(run, run.critic, updater.critic_stepper)
    updater.use(stepper, critic_stepper, _refresher(run.policy.model, copied, stepper))


def _spread(run: Run, model: nn.Module, stepper: Stepper) -> Stepper:
    """One model, with the state that its optimiser had."""
    if run.config.parallel.kind == "deepspeed":
        from learner.zero import zero

        return zero(model, stepper, run.config, run.ranks)
    from learner.sharding import ShardedStepper, shard

    state = stepper.state()
    shard(model, run.ranks)
    spread_out = ShardedStepper(stepper.again(model), run.ranks)
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
