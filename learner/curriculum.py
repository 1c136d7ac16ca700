"""What an update plays: new groups, and with `rollout.curriculum = "spread"` also past ones whose rewards differed.

A group whose episodes all get the same reward teaches nothing, and is likely to do so again. So up to half of the
groups are scenarios and seeds of the last updates again, drawn in proportion to the standard deviation that their
rewards had (prioritised level replay, arXiv 2010.03934). The others are new, so that a scenario that was all alike is
still tried. What is drawn depends on the run's seed and on what was learned from, which is in the checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import pstdev

import numpy as np

from learner.rollout import RolloutStage
from learner.stages import Stages
from learner.types import Group

FILE = "curriculum.json"
AGAIN = 0.5
"""Most groups of an update that are played again, as a share."""
WINDOW = 50
"""Updates after which a group is forgotten: the policy is another one."""
_NOISE = 2
"""Keeps these draws apart from those of training (0) and evaluation (1)."""


@dataclass(frozen=True)
class Drawn:
    """A group that is to be played."""

    seed: int
    stage: RolloutStage


@dataclass(frozen=True)
class PastGroup:
    """A group that was learned from."""

    step: int
    stage: str
    seed: int
    spread: float
    """Standard deviation of its rewards."""


class Curriculum:
    """Remembers the groups of a run, and draws those of its updates."""

    def __init__(self, run_seed: int, *, is_on: bool, staleness: int = 0) -> None:
        """`staleness`: how many updates ahead of the learner groups are drawn (`rollout.max_staleness`)."""
        self._run_seed = run_seed
        self._is_on = is_on
        self._lag = staleness + 1
        self._past: list[PastGroup] = []

    def draw(self, step: int, numbers: Sequence[int], stages: Stages) -> list[Drawn]:
        """The groups of an update, which has these numbers for new ones."""
        drawn = [Drawn(number, stages.of(number)) for number in numbers]
        known = {stage.name: stage for stage in stages.training}
        # Not what is learned from meanwhile: how far that is depends on the clock.
        past = {(each.stage, each.seed): each for each in self._past if each.step <= step - self._lag}
        pool = [each for each in past.values() if each.spread > 0 and each.stage in known]
        count = min(int(len(numbers) * AGAIN), len(pool))
        if not count:
            return drawn
        dice = np.random.default_rng([self._run_seed, _NOISE, step])
        weights = np.array([each.spread for each in pool])
        # In any place: each number stands for a scenario, and all of them shall stay new ones at times.
        places = dice.choice(len(numbers), count, replace=False)
        chosen = dice.choice(len(pool), count, replace=False, p=weights / weights.sum())
        for place, found in zip(places, chosen, strict=True):
            drawn[place] = Drawn(pool[found].seed, known[pool[found].stage])
        return drawn

    def replayed(self, groups: Sequence[Group]) -> int:
        """How many of the groups of an update were learned from before."""
        past = {(each.stage, each.seed) for each in self._past}
        return sum((group.stage, group.seed) in past for group in groups)

    def learned(self, step: int, groups: Sequence[Group]) -> None:
        """Remember the groups of an update; one with less than two episodes left says nothing."""
        if not self._is_on:
            return
        found = [PastGroup(step, each.stage, each.seed, pstdev(each.rewards)) for each in groups if each.rewards[1:]]
        self._past = [each for each in self._past if each.step > step - self._lag - WINDOW] + found

    def save(self, folder: Path) -> None:
        """Write what is remembered into a checkpoint."""
        if self._past:
            rows = [[each.step, each.stage, each.seed, each.spread] for each in self._past]
            (folder / FILE).write_text(json.dumps(rows))

    def load(self, folder: Path) -> None:
        """Remember what a checkpoint has."""
        path = folder / FILE
        self._past = [PastGroup(*row) for row in json.loads(path.read_text())] if path.exists() else []
