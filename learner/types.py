"""Types that flow through the learner: segments of tokens, trajectories, groups.

Token ids are kept from the moment they are sampled and never made again from text. Every check
here is on construction, so a trajectory that exists can be trained on: it holds a finite reward,
its sampled tokens have log-probabilities, and its persona's tokens do not. An errored episode is
not a trajectory; a group only counts it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Segment:
    """A run of tokens that were all sampled by the policy, or all given to it."""

    ids: tuple[int, ...]
    logp: tuple[float, ...] | None = None
    """Log-probability of each token when it was sampled; None for the persona's and the template's tokens."""
    fork: bool = False
    """The template renders the past in another way from here on: this begins a row of its own."""
    support: tuple[tuple[int, ...], ...] | None = None
    """The tokens that could be drawn at each place, where top-k or top-p left some out (`support`)."""

    def __post_init__(self) -> None:
        if self.logp is None:
            return
        if self.support is not None and len(self.support) != len(self.ids):
            raise ValueError("a sampled segment has the tokens that could be drawn at each of its places, or at none")
        if not self.ids or len(self.logp) != len(self.ids):
            raise ValueError("a sampled segment needs tokens, and a log-probability for each")
        if not all(math.isfinite(value) and value <= 0.0 for value in self.logp):
            raise ValueError("log-probabilities of sampled tokens must be finite and at most 0")

    @property
    def sampled(self) -> bool:
        """True if the policy wrote it."""
        return self.logp is not None


@dataclass(frozen=True)
class Trajectory:
    """One finished episode, from the policy's side."""

    segments: tuple[Segment, ...]
    turn_rewards: tuple[float, ...]
    """Reward of the conversation so far after each of the policy's turns."""
    seed: int
    episode_id: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    terminal_reason: str = "completed"
    truncated_turns: int = 0
    """Turns that were cut off at the token limit."""
    lossy_turns: int = 0
    """Turns whose tokens do not decode to clean text."""
    tool_calls: int = 0
    """Calls of the scenario's tools that were sent."""

    def __post_init__(self) -> None:
        turns = sum(segment.sampled for segment in self.segments)
        if not turns or self.segments[0].sampled:
            raise ValueError("a trajectory starts with what the policy was given, and has a turn of its own")
        if len(self.turn_rewards) != turns:
            raise ValueError(f"{turns} turns but {len(self.turn_rewards)} rewards")
        if not all(math.isfinite(reward) and 0.0 <= reward <= 1.0 for reward in self.turn_rewards):
            raise ValueError("rewards must be numbers from 0 to 1")

    @property
    def reward(self) -> float:
        """Reward of the whole conversation."""
        return self.turn_rewards[-1]

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens in order."""
        return tuple(token for segment in self.segments for token in segment.ids)

    @property
    def rows(self) -> list[tuple[Segment, ...]]:
        """The sequences that the model saw: one, and one more for each fork. A sampled token is in exactly one."""
        return rows_in(self.segments)

    @property
    def turn_lengths(self) -> list[int]:
        """The number of tokens of each of the policy's turns."""
        return [len(segment.ids) for segment in self.segments if segment.sampled]

    @property
    def turns(self) -> int:
        """The number of the policy's turns."""
        return len(self.turn_rewards)

    @property
    def sampled_tokens(self) -> int:
        """The number of tokens that are trained on."""
        return sum(len(segment.ids) for segment in self.segments if segment.sampled)


def rows_in(segments: tuple[Segment, ...]) -> list[tuple[Segment, ...]]:
    """A conversation cut where it forks."""
    starts = [0, *(place for place, segment in enumerate(segments) if segment.fork and place)]
    ends = [*starts[1:], len(segments)]
    return [segments[start:end] for start, end in zip(starts, ends, strict=True)]


@dataclass(frozen=True)
class Group:
    """Episodes of one scenario and one seed, compared with each other."""

    seed: int
    trajectories: tuple[Trajectory, ...]
    errored: int = 0
    """Members that failed: they have no reward and are in no baseline."""
    error_codes: tuple[str, ...] = ()
    error_messages: Mapping[str, str] = field(default_factory=dict)
    """What was said of the first member with each of these codes."""
    stage: str = ""
    """The scenario, as collection/scenario."""

    @property
    def rewards(self) -> list[float]:
        """Rewards of the members that have one."""
        return [trajectory.reward for trajectory in self.trajectories]
