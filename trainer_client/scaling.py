"""Scaling rewards to a training run: mean 0 and standard deviation 1, as an explicit choice of the trainer.

The server's rewards never change: the same conversation has the same reward today and in a year, which caching, replay
and comparing runs rest on. What a run feeds its optimiser is the trainer's business, so this lives here. Statistics are
exact over all rewards seen until `freeze()` (Welford 1962), kept apart by key, and saved with the checkpoint. During
the warm-up `scale` refuses: rewards are collected with `observe`, and there is no jump from one scale to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["AdaptiveScaler", "NotWarmError"]

FORMAT = 1
SMALLEST_STD = 1e-8
"""Below it all rewards of a key are equal but for rounding, and every one of them is scaled to 0."""


class NotWarmError(RuntimeError):
    """Too few rewards of a key were observed to scale one."""


@dataclass
class _Running:
    """Mean and sum of squared distances from it."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        distance = value - self.mean
        self.mean += distance / self.n
        self.squares += distance * (value - self.mean)

    @property
    def std(self) -> float:
        """Of the population."""
        return math.sqrt(self.squares / self.n) if self.n else 0.0


class AdaptiveScaler:
    """Scales rewards by the mean and standard deviation of those of the same key, such as a scenario.

        scaler = AdaptiveScaler(warmup=64)
        scaler.observe(rewards, key="tired-and-dizzy")
        if scaler.is_warm("tired-and-dizzy"):
            advantages_from(scaler.scale_all(rewards, key="tired-and-dizzy"))

    A scaled reward is cut at `clip` standard deviations. After `freeze()` statistics stay as they are, so that one
    reward is scaled alike for the rest of the run; observing more is an error, and not ignored.
    """

    def __init__(self, warmup: int = 64, clip: float = 5.0) -> None:
        if warmup < 2:
            raise ValueError("warmup must be 2 or more: one reward has no spread")
        if not (math.isfinite(clip) and clip > 0.0):
            raise ValueError("clip must be a positive number")
        self._warmup = warmup
        self._clip = clip
        self._frozen = False
        self._running: dict[str, _Running] = {}

    @property
    def is_frozen(self) -> bool:
        """True if statistics stay as they are."""
        return self._frozen

    def is_warm(self, key: str = "") -> bool:
        """True if rewards of the key can be scaled."""
        return self._of(key).n >= self._warmup

    def mean(self, key: str = "") -> float:
        """Of all rewards observed; 0 before the first."""
        return self._of(key).mean

    def std(self, key: str = "") -> float:
        """Population standard deviation of all rewards observed."""
        return self._of(key).std

    def observe(self, rewards: Iterable[float], key: str = "") -> None:
        """Take rewards into the statistics of a key, all of them or none.

        Raises:
            ValueError: one is no number.
            RuntimeError: the scaler is frozen.
        """
        if self._frozen:
            raise RuntimeError("the scaler is frozen: its statistics do not change any more")
        values = [_finite(reward) for reward in rewards]
        running = self._running.setdefault(key, _Running())
        for value in values:
            running.add(value)

    def scale(self, reward: float, key: str = "") -> float:
        """(reward - mean) / std, cut at `clip`; 0 where all rewards observed were equal.

        Raises:
            NotWarmError: fewer than `warmup` rewards of the key were observed.
            ValueError: the reward is no number.
        """
        value, running = _finite(reward), self._of(key)
        if running.n < self._warmup:
            raise NotWarmError(f"{running.n} rewards of {key!r} were observed, scaling starts at {self._warmup}")
        if running.std < SMALLEST_STD:
            return 0.0
        return min(self._clip, max(-self._clip, (value - running.mean) / running.std))

    def scale_all(self, rewards: Iterable[float], key: str = "") -> list[float]:
        """`scale` of each."""
        return [self.scale(reward, key) for reward in rewards]

    def freeze(self) -> None:
        """Keep the statistics for the rest of the run.

        Raises:
            NotWarmError: a key that was observed is still warming up, or none was.
        """
        cold = sorted(key for key, running in self._running.items() if running.n < self._warmup)
        if cold or not self._running:
            raise NotWarmError(f"still warming up: {', '.join(map(repr, cold)) or 'nothing was observed'}")
        self._frozen = True

    def state_dict(self) -> dict[str, Any]:
        """Everything in it as JSON types, for a checkpoint."""
        keys = {key: [running.n, running.mean, running.squares] for key, running in self._running.items()}
        return {
            "format": FORMAT,
            "warmup": self._warmup,
            "clip": self._clip,
            "frozen": self._frozen,
            "keys": keys,
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """The scaler that was saved.

        Raises:
            ValueError: the state is not one of `state_dict`.
        """
        try:
            scaler = cls(int(state["warmup"]), float(state["clip"]))
            scaler._running = {str(key): _restored(*found) for key, found in state["keys"].items()}
            scaler._frozen = bool(state["frozen"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError("this is not the state of an AdaptiveScaler") from error
        if state.get("format") != FORMAT:
            raise ValueError("this is not the state of an AdaptiveScaler of this version")
        return scaler

    def _of(self, key: str) -> _Running:
        return self._running.get(key, _Running())


def _restored(n: int, mean: float, squares: float) -> _Running:
    if n < 0 or squares < 0.0:
        raise ValueError("counts and spreads are not negative")
    return _Running(int(n), _finite(mean), _finite(squares))


def _finite(value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a reward must be a finite number; an episode without a reward is to be left out")
    return number
