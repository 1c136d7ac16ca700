"""From groups of episodes to what each turn is worth: shaping, which groups say something, advantages.

What compares the members of a group gives one number per turn here. What needs values or rewards of
single tokens (`gae`, `token_return_whitened`) is made of the whole batch, in `update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from learner import advantages
from learner.algorithms import TOKEN_ADVANTAGES, Objective
from learner.types import Group, Trajectory


@dataclass(frozen=True)
class CreditAssignment:
    """The way in which an objective reads the rewards of a group."""

    objective: Objective
    turn_limit: int = 0
    """Longest turn in tokens, for the shaping of overlong ones."""
    tolerance: float = 1e-4
    """Rewards closer than this are equal."""

    def rewards(self, trajectory: Trajectory) -> tuple[float, ...]:
        """Reward of the conversation so far after each turn, less what overlong turns cost."""
        share = self.objective.overlong
        if not share or not self.turn_limit:
            return trajectory.turn_rewards
        cache = max(1, round(share * self.turn_limit))
        cost, out = 0.0, []
        for length, reward in zip(trajectory.turn_lengths, trajectory.turn_rewards, strict=True):
            cost += advantages.overlong_penalty(length, self.turn_limit, cache) / trajectory.turns
            out.append(reward + cost)
        return tuple(out)

    def gains(self, trajectory: Trajectory) -> list[float]:
        """The amount that each turn added to the reward, or with credit `episode` all of it in the last turn."""
        rewards = self.rewards(trajectory)
        if self.objective.credit == "episode":
            return [0.0] * (len(rewards) - 1) + [rewards[-1]]
        return [reward - before for reward, before in zip(rewards, (0.0, *rewards), strict=False)]

    def is_informative(self, group: Group) -> bool:
        """True if the objective can tell the members of a group apart."""
        if self.objective.advantage in TOKEN_ADVANTAGES:
            return bool(group.trajectories)
        if self.objective.advantage == "dimension_z_scores":
            return any(self._differ(stream) for stream in dimension_streams(group.trajectories).values())
        # Before any shaping: turns of other lengths do not make a solved group interesting.
        rewards = [trajectory.turn_rewards for trajectory in group.trajectories]
        if self.objective.credit == "episode":
            return self._differ([each[-1] for each in rewards])
        gains = [advantages.gains_to_go(each, self.objective.gamma) for each in rewards]
        longest = max(map(len, gains), default=0)
        return any(self._differ([each[turn] for each in gains if len(each) > turn]) for turn in range(longest))

    def per_turn(self, groups: Sequence[Group], weights: dict[str, float] | None = None) -> list[tuple[float, ...]]:
        """The advantage of each turn of each member, in order."""
        trajectories = [trajectory for group in groups for trajectory in group.trajectories]
        numbers = torch.tensor([number for number, group in enumerate(groups) for _ in group.trajectories])
        if self.objective.advantage == "dimension_z_scores":
            values = _of_dimensions(trajectories, numbers, weights or {})
        else:
            estimate = advantages.ESTIMATORS[self.objective.advantage]
            rewards = [self.rewards(trajectory) for trajectory in trajectories]
            if self.objective.credit == "to_go":
                found = advantages.per_turn(rewards, numbers, estimate, gamma=self.objective.gamma)
                return [tuple(row) for row in found]
            ends = torch.tensor([each[-1] for each in rewards], dtype=torch.float64)
            values = estimate(ends, numbers)
        return [(value,) * each.turns for value, each in zip(values.tolist(), trajectories, strict=True)]

    def _differ(self, rewards: Sequence[float]) -> bool:
        return advantages.is_informative(rewards, self.tolerance)


def dimension_streams(trajectories: Sequence[Trajectory]) -> dict[str, list[float]]:
    """The scores of each dimension; one that a member lacks counts 0 there."""
    names = sorted({name for trajectory in trajectories for name in trajectory.scores})
    return {name: [trajectory.scores.get(name, 0.0) for trajectory in trajectories] for name in names}


def _of_dimensions(
    trajectories: Sequence[Trajectory], numbers: torch.Tensor, weights: dict[str, float]
) -> torch.Tensor:
    # A weight whose dimension is not among them belongs to a scenario that this batch has no usable group of.
    streams = dimension_streams(trajectories)
    if not streams:
        raise ValueError("this algorithm needs scores per dimension, but the server returned none")
    values = [torch.tensor(stream, dtype=torch.float64) for stream in streams.values()]
    return advantages.several_rewards(values, [weights.get(name, 1.0) for name in streams], numbers)
