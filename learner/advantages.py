"""Rewards to advantages: pure functions of tensors, one row of a table per estimator.

Sequence estimators take `rewards` [B] and `groups` [B] (the group number of each sequence) and
return [B]. Groups may be ragged: an errored episode is simply absent. A group of one carries no
relative signal, so its advantage is 0, never its raw reward. Token estimators work on [B, T] and
skip the persona's tokens. Nothing here knows what a policy is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

SequenceEstimator = Callable[[Tensor, Tensor], Tensor]
STD_EPSILON = 1e-4


# --- one number per sequence ------------------------------------------------------------------


def group_z_score(rewards: Tensor, groups: Tensor, *, epsilon: float = STD_EPSILON, ddof: int = 1) -> Tensor:
    """(R - mean) / (std + epsilon) within the group. GRPO."""
    centred = group_mean_only(rewards, groups)
    size = _group_sum(torch.ones_like(rewards), groups)
    variance = _group_sum(centred**2, groups) / (size - ddof).clamp(min=1)
    spread = variance.sqrt() + epsilon
    # With epsilon 0 a constant group would divide 0 by 0; its advantages are 0.
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))


def group_mean_only(rewards: Tensor, groups: Tensor) -> Tensor:
    """R - mean of the group. Dr. GRPO: no std, so nearly constant groups are not blown up."""
    return rewards - _group_mean(rewards, groups)


def batch_std(rewards: Tensor, groups: Tensor, *, epsilon: float = STD_EPSILON) -> Tensor:
    """Centred in the group, scaled by the std of the whole batch's rewards."""
    if len(rewards) < 2:
        return torch.zeros_like(rewards)
    return group_mean_only(rewards, groups) / (rewards.std() + epsilon)


def leave_one_out(rewards: Tensor, groups: Tensor) -> Tensor:
    """R - mean of the other members. RLOO."""
    size = _group_sum(torch.ones_like(rewards), groups)
    return group_mean_only(rewards, groups) * size / (size - 1).clamp(min=1)


def mean_normalised(rewards: Tensor, groups: Tensor) -> Tensor:
    """(R - mean) / mean. MaxRL; a group whose mean is 0 has no signal."""
    mean = _group_mean(rewards, groups)
    return torch.where(mean > 0, (rewards - mean) / torch.where(mean > 0, mean, 1.0), torch.zeros_like(rewards))


def group_mean_batch_whitened(rewards: Tensor, groups: Tensor, *, epsilon: float = STD_EPSILON) -> Tensor:
    """Centred in the group, then whitened over the batch of sequences. REINFORCE++-baseline, per sequence."""
    centred = group_mean_only(rewards, groups)
    if len(centred) < 2:
        return centred
    return (centred - centred.mean()) / (centred.std() + epsilon)


ESTIMATORS: Mapping[str, SequenceEstimator] = {
    "group_z_score": group_z_score,
    "group_mean_only": group_mean_only,
    "batch_std": batch_std,
    "leave_one_out": leave_one_out,
    "mean_normalised": mean_normalised,
    "group_mean_batch_whitened": group_mean_batch_whitened,
}


def several_rewards(streams: Sequence[Tensor], weights: Sequence[float], groups: Tensor) -> Tensor:
    """Normalise each reward stream on its own, then weight, sum and whiten. GDPO; fits scores per dimension."""
    total = sum(
        (weight * group_z_score(stream, groups) for stream, weight in zip(streams, weights, strict=True)),
        start=torch.zeros_like(streams[0]),
    )
    return (total - total.mean()) / (total.std() + STD_EPSILON)


def per_turn(
    turn_rewards: Sequence[Sequence[float]], groups: Tensor, estimate: SequenceEstimator, *, gamma: float = 1.0
) -> list[list[float]]:
    """Credit each turn with what the reward gained from it on, compared in the group at the same turn.

    `turn_rewards` are rewards of the conversation so far; later gains count `gamma` per turn of distance.
    What a conversation had earned before a turn says nothing about that turn, so it leaves the variance.
    """
    gains = [gains_to_go(rewards, gamma) for rewards in turn_rewards]
    longest = max(len(row) for row in gains)
    places = torch.tensor(
        [int(groups[row]) * longest + turn for row, each in enumerate(gains) for turn in range(len(each))]
    )
    _, compact = torch.unique(places, return_inverse=True)
    flat = torch.tensor([gain for row in gains for gain in row], dtype=torch.float64)
    values = iter(estimate(flat, compact).tolist())
    return [[next(values) for _ in row] for row in gains]


def gains_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    """The gain of the reward from each turn on, later gains at `gamma` per turn of distance."""
    out: list[float] = []
    ahead = 0.0
    for turn in reversed(range(len(rewards))):
        ahead = rewards[turn] - (rewards[turn - 1] if turn else 0.0) + gamma * ahead
        out.append(ahead)
    return out[::-1]


# --- one number per token ---------------------------------------------------------------------


def whiten(values: Tensor, mask: Tensor, *, epsilon: float = 1e-8) -> Tensor:
    """Zero mean and unit variance over the sampled tokens of the batch; 0 elsewhere."""
    count = mask.sum()
    mean = (values * mask).sum() / count
    variance = (((values - mean) ** 2) * mask).sum() / (count - 1).clamp(min=1)
    return (values - mean) / (variance + epsilon).sqrt() * mask


def token_returns(rewards: Tensor, mask: Tensor, penalty: Tensor | None = None) -> Tensor:
    """Reward-to-go on each sampled token: the sequence's reward on its last one, less a penalty per token."""
    last = mask.cumsum(1) == mask.sum(1, keepdim=True)
    steps = rewards[:, None] * (last & (mask > 0)) * 1.0
    if penalty is not None:
        steps = steps - penalty * mask
    return steps.flip(1).cumsum(1).flip(1) * mask


def discounted_returns(steps: Tensor, mask: Tensor, gamma: float = 1.0) -> Tensor:
    """[B, T] reward-to-go of each token; rows hold the policy's tokens alone, so distance counts those."""
    ahead = torch.zeros_like(steps[:, 0])
    out = torch.zeros_like(steps)
    for position in reversed(range(steps.shape[1])):
        ahead = steps[:, position] + gamma * ahead
        out[:, position] = ahead
    return out * mask


def gae(steps: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, lam: float | Tensor = 0.95) -> Tensor:
    """Generalised advantages; the persona's tokens are carried across. `lam` may be one number per sequence."""
    lam = torch.as_tensor(lam, dtype=values.dtype)
    advantage = torch.zeros_like(values[:, 0])
    next_value = torch.zeros_like(advantage)
    out = torch.zeros_like(values)
    for position in reversed(range(values.shape[1])):
        sampled = mask[:, position] > 0
        delta = steps[:, position] + gamma * next_value - values[:, position]
        step = delta + gamma * lam * advantage
        advantage = torch.where(sampled, step, advantage)
        next_value = torch.where(sampled, values[:, position], next_value)
        out[:, position] = torch.where(sampled, step, torch.zeros_like(step))
    return out


def vapo_lambda(lengths: Tensor, alpha: float = 0.05) -> Tensor:
    """1 - 1 / (alpha * length), which is negative for short turns: clamped at 0."""
    return (1.0 - 1.0 / (alpha * lengths)).clamp(min=0.0)


# --- what is worth training on ----------------------------------------------------------------


def is_informative(rewards: Sequence[float], tolerance: float = 1e-4) -> bool:
    """True if a group's rewards differ by more than noise; equal up to rounding is constant."""
    return len(rewards) > 1 and max(rewards) - min(rewards) > tolerance


def overlong_penalty(length: int, limit: int, cache: int) -> float:
    """0 up to `limit - cache`, then linear down to -1 at `limit`. DAPO."""
    return -min(1.0, max(0.0, (length - (limit - cache)) / cache))


def _group_sum(values: Tensor, groups: Tensor) -> Tensor:
    count = int(groups.max()) + 1 if len(groups) else 0
    sums = torch.zeros(count, dtype=values.dtype).index_add(0, groups, values)
    return sums[groups]


def _group_mean(values: Tensor, groups: Tensor) -> Tensor:
    return _group_sum(values, groups) / _group_sum(torch.ones_like(values), groups)
