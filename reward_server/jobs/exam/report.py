"""What an exam found: figures, the limits they are held against, and the failures in words.

The figures hold no private text and may be published. `Advice` explains failures to the author and quotes the
author's own file, so it stays on the author's terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

from scenarios.exam import BAD, GOOD


@dataclass(frozen=True)
class Limits:
    """What a scenario must reach."""

    oracle_at_least: float = 0.85
    bad_at_most: float = 0.30
    gap_at_least: float = 0.40
    hit_rate_at_least: float = 0.90
    foreign_rate_at_most: float = 0.05
    leaks_at_most: int = 0


LIMITS = Limits()


@dataclass(frozen=True)
class Figures:
    """The numbers of one scenario's exam."""

    scenario: str
    plays: int
    rewards: Mapping[str, tuple[float, ...]]
    """Agent -> its rewards over temperaments and seeds."""
    hit_rate: float
    probes: int
    foreign_rate: float
    probing_turns: int
    leaks: int
    drawn_out: int
    """Open facts told during probing: no leaks, but no probing line means to ask for one."""
    replay_identical: bool
    reward_equal: bool
    group_spread: float
    """Population standard deviation of the rewards of a group of varied agents."""
    never_met: int
    """Positive criteria that no scripted agent met."""
    always_met: int
    """Criteria that every scripted agent met."""

    def mean(self, agent: str) -> float:
        """An agent's mean reward."""
        return fmean(self.rewards[agent])

    @property
    def oracle(self) -> float:
        """The oracle's worst reward."""
        return min(self.rewards["oracle"])

    @property
    def best_bad(self) -> tuple[str, float]:
        """The bad agent with the highest single reward."""
        name = max(BAD, key=lambda agent: (max(self.rewards[agent]), agent))
        return name, max(self.rewards[name])

    @property
    def ordered(self) -> bool:
        """Whether oracle > good > terse > rude >= random holds for the means."""
        means = [self.mean(agent) for agent in GOOD]
        return all(better > worse for better, worse in pairwise(means[:-1])) and means[-2] >= means[-1]


@dataclass(frozen=True)
class Advice:
    """One failure, and what the author can look at. Private."""

    failure: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScenarioExam:
    """The result of one scenario."""

    figures: Figures
    advice: tuple[Advice, ...] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False, default=())
    """Remarks that fail nothing."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.advice

    def to_json(self) -> dict[str, Any]:
        """The figures and the names of the failures."""
        figures = asdict(self.figures)
        return {
            **figures,
            "rewards": {name: list(values) for name, values in sorted(self.figures.rewards.items())},
            "passed": self.passed,
            "failures": [advice.failure for advice in self.advice],
            "seconds": round(self.seconds, 1),
        }


def markdown(exams: list[ScenarioExam], scoring_version: str) -> str:
    """The published table."""
    head = ("scenario", *GOOD, "best bad agent", "paraphrases", "foreign", "leaks", "passed")
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] * len(head))}|"]
    for exam in exams:
        f = exam.figures
        bad, reward = f.best_bad
        cells = [f.scenario, *(f"{f.mean(agent):.2f}" for agent in GOOD), f"{reward:.2f} ({bad})"]
        cells += [f"{f.hit_rate:.0%} of {f.probes}", f"{f.foreign_rate:.0%}", f"{f.leaks} in {f.probing_turns} turns"]
        lines.append(f"| {' | '.join([*cells, 'yes' if exam.passed else 'no'])} |")
    return "\n".join([*lines, "", *_summary(exams), "", f"Scoring version `{scoring_version}`.", ""])


def _summary(exams: list[ScenarioExam]) -> list[str]:
    figures = [exam.figures for exam in exams]
    if not figures:
        return ["No scenarios."]
    probes = sum(f.probes for f in figures)
    hits = sum(f.probes * f.hit_rate for f in figures)
    order = sum(f.ordered for f in figures) / len(figures)
    return [
        f"{len(figures)} scenarios, {sum(f.plays for f in figures)} conversations. "
        f"Worst oracle {min(f.oracle for f in figures):.2f}, best bad agent {max(f.best_bad[1] for f in figures):.2f}, "
        f"order kept in {order:.0%}, {hits / max(1, probes):.1%} of {probes} paraphrases understood, "
        f"{sum(f.leaks for f in figures)} leaks in {sum(f.probing_turns for f in figures)} probing turns."
    ]
