"""One optimiser step (or a few) from a batch of groups.

The gradient of a step is that of the whole batch: micro-batches divide by the counts of the step,
not by their own. Groups whose rewards do not differ carry no signal and are left out. With one
update per batch the old policy is the present one, so no second forward pass is made; with more,
the sampler's log-probabilities are the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from learner import advantages
from learner.model import Policy, Rows, rows_of
from learner.objectives import LossInputs, Objective, mismatch_metrics, policy_loss
from learner.types import Group, Trajectory

Credit = Literal["episode", "to_go"]


@dataclass(frozen=True)
class UpdateSettings:
    """How a batch becomes steps."""

    objective: Objective
    credit: Credit = "episode"
    """`episode`: the reward of the conversation to all its tokens. `to_go`: to each turn what was gained from it on."""
    gamma: float = 1.0
    """With `to_go`: how much a gain counts one turn earlier."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    clip_norm: float = 1.0
    minibatches: int = 1
    """Optimiser steps per batch."""
    micro_tokens: int = 16_384
    """Padded tokens per forward pass."""
    tolerance: float = 1e-4
    """Rewards closer than this are equal."""


@dataclass(frozen=True)
class _Example:
    trajectory: Trajectory
    credit: tuple[float, ...]
    """Advantage of each turn."""


@dataclass(frozen=True)
class _Tally:
    """Sums over one optimiser step."""

    sequences: int
    tokens: int


def check_trainable(objective: Objective) -> None:
    """Refuse an objective whose loss is here but whose advantages need what this learner does not have."""
    if objective.advantage not in advantages.ESTIMATORS:
        raise ValueError(
            f"advantage {objective.advantage!r} needs a value model or token rewards, which this learner"
            f" does not train; it has {', '.join(advantages.ESTIMATORS)}"
        )


class Updater:
    """Holds the optimiser of one policy."""

    def __init__(
        self,
        policy: Policy,
        optimizer: torch.optim.Optimizer,
        settings: UpdateSettings,
        pad_id: int,
        reference: Policy | None = None,
    ) -> None:
        check_trainable(settings.objective)
        if settings.objective.kl != "none" and settings.objective.beta and reference is None:
            raise ValueError("a KL term needs a reference policy")
        self._policy = policy
        self._optimizer = optimizer
        self._settings = settings
        self._pad_id = pad_id
        self._reference = reference

    def update(self, groups: Sequence[Group]) -> dict[str, float]:
        """Train on the groups; returns what happened."""
        usable = [group for group in groups if advantages.is_informative(group.rewards, self._settings.tolerance)]
        metrics = {"groups/all": float(len(groups)), "groups/used": float(len(usable))}
        if not usable:
            return metrics
        examples = self._examples(usable)
        parts = _split(examples, self._settings.minibatches)
        steps = [self._optimizer_step(part, on_policy=len(parts) == 1) for part in parts]
        for name in steps[0]:
            metrics[name] = sum(step[name] for step in steps) / len(steps)
        return metrics

    def _examples(self, groups: Sequence[Group]) -> list[_Example]:
        trajectories = [trajectory for group in groups for trajectory in group.trajectories]
        numbers = torch.tensor([number for number, group in enumerate(groups) for _ in group.trajectories])
        estimate = advantages.ESTIMATORS[self._settings.objective.advantage]
        if self._settings.credit == "to_go":
            rewards = [trajectory.turn_rewards for trajectory in trajectories]
            credits = [
                tuple(row) for row in advantages.per_turn(rewards, numbers, estimate, gamma=self._settings.gamma)
            ]
        else:
            ends = torch.tensor([trajectory.reward for trajectory in trajectories], dtype=torch.float64)
            credits = [
                (value,) * trajectory.turns
                for value, trajectory in zip(estimate(ends, numbers).tolist(), trajectories, strict=True)
            ]
        return [_Example(trajectory, credit) for trajectory, credit in zip(trajectories, credits, strict=True)]

    def _optimizer_step(self, examples: Sequence[_Example], *, on_policy: bool) -> dict[str, float]:
        tally = _Tally(len(examples), sum(example.trajectory.sampled_tokens for example in examples))
        self._optimizer.zero_grad(set_to_none=True)
        sums: dict[str, float] = {}
        for micro in _by_tokens(examples, self._settings.micro_tokens):
            share = sum(example.trajectory.sampled_tokens for example in micro) / tally.tokens
            for name, value in self._backward(micro, tally, on_policy=on_policy).items():
                sums[name] = sums.get(name, 0.0) + share * value
        parameters = [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._settings.clip_norm)
        self._optimizer.step()
        return {**sums, "update/grad_norm": float(norm), "update/tokens": float(tally.tokens)}

    def _backward(self, examples: Sequence[_Example], tally: _Tally, *, on_policy: bool) -> dict[str, float]:
        rows = rows_of([example.trajectory.segments for example in examples], self._pad_id, self._policy.device)
        scored = self._policy.score(rows)
        inputs = LossInputs(
            old_logp=scored.logp.detach() if on_policy else rows.sampler_logp,
            mask=rows.sampled,
            advantages=_token_advantages(examples, rows),
            sampler_logp=rows.sampler_logp,
            reference_logp=self._reference_logp(rows),
            rewards=torch.tensor([example.trajectory.reward for example in examples], device=rows.ids.device),
            total_sequences=tally.sequences,
            total_tokens=tally.tokens,
        )
        output = policy_loss(scored.logp, inputs, self._settings.objective)
        entropy = (scored.entropy * rows.sampled).sum() / tally.tokens
        (output.loss - self._settings.entropy * entropy).backward()  # type: ignore[no-untyped-call]
        metrics = {f"update/{name}": value for name, value in output.metrics.items()}
        metrics |= mismatch_metrics(scored.logp.detach(), rows.sampler_logp, rows.sampled) if on_policy else {}
        count = float(rows.sampled.sum())
        return {**metrics, "update/entropy": float((scored.entropy.detach() * rows.sampled).sum()) / count}

    def _reference_logp(self, rows: Rows) -> Tensor | None:
        if self._reference is None:
            return None
        with torch.no_grad():
            return self._reference.score(rows).logp


def _token_advantages(examples: Sequence[_Example], rows: Rows) -> Tensor:
    out = torch.zeros(rows.ids.shape)
    for row, example in enumerate(examples):
        start, turn = 0, 0
        for segment in example.trajectory.segments:
            end = start + len(segment.ids)
            if segment.sampled:
                out[row, start:end] = example.credit[turn]
                turn += 1
            start = end
    return out.to(rows.ids.device)


def _split(examples: Sequence[_Example], parts: int) -> list[Sequence[_Example]]:
    """Near-equal parts, dealt out in turn so that no part is one group's."""
    parts = max(1, min(parts, len(examples)))
    return [examples[start::parts] for start in range(parts)]


def _by_tokens(examples: Sequence[_Example], budget: int) -> Iterator[list[_Example]]:
    """Rows of similar length together, as many as the budget of padded tokens allows."""
    micro: list[_Example] = []
    for example in sorted(examples, key=lambda example: len(example.trajectory.ids)):
        width = len(example.trajectory.ids)
        if micro and width * (len(micro) + 1) > budget:
            yield micro
            micro = []
        micro.append(example)
    if micro:
        yield micro
