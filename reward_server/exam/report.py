"""The report of an exam: figures, the limits they are held against, and the failures in words.

The figures hold no private text and may be published. `Failure` explains failures to the author and quotes the
author's own file, so it stays on the author's terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

from reward_server.exam.questions import MEASURES, Share
from scenarios.exam import BAD, NATURAL, ORACLE


@dataclass(frozen=True)
class ExamThresholds:
    """The thresholds of a scenario."""

    oracle_at_least: float = 0.85
    bad_at_most: float = 0.40
    """Mean reward of each bad policy, which must also stay below the ok agent's. Above `bad_aim` there is a note."""
    bad_aim: float = 0.15
    leaks_at_most: int = 0


LIMITS = ExamThresholds()
LEVELS: Mapping[str, tuple[float, float]] = {"excellent": (0.70, 1.0), "ok": (0.25, 0.65), "poor": (0.0, 0.20)}
"""Where the mean rewards of the natural agents should lie. Missing it is a note, a wrong order is a failure."""


@dataclass(frozen=True)
class Figures:
    """The numbers of one scenario's exam."""

    scenario: str
    plays: int
    rewards: Mapping[str, tuple[float, ...]]
    """Agent -> its rewards over temperaments and seeds."""
    understood: Mapping[str, Share]
    """Measures of comprehension on the labelled turns that are kept aside."""
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
    def has_natural(self) -> bool:
        """True if natural agents were played."""
        return set(NATURAL) <= set(self.rewards)

    @property
    def oracle(self) -> float:
        """The oracle's worst reward."""
        return min(self.rewards[ORACLE])

    @property
    def best_bad(self) -> tuple[str, float]:
        """The bad policy with the highest mean reward."""
        name = max(BAD, key=lambda agent: (self.mean(agent), agent))
        return name, self.mean(name)

    @property
    def bad_at_most(self) -> float:
        """The most that a bad policy may reach here."""
        return min(LIMITS.bad_at_most, self.mean("ok")) if self.has_natural else LIMITS.bad_at_most

    @property
    def ordered(self) -> bool:
        """True if excellent > ok > poor holds for the means."""
        means = [self.mean(agent) for agent in NATURAL] if self.has_natural else []
        return all(better > worse for better, worse in pairwise(means))

    def share(self, measure: str) -> str:
        """A measure in words: `92% of 25`."""
        found = self.understood[measure]
        return f"{found.value:.0%} of {found.of}" if found.of else "-"


@dataclass(frozen=True)
class Failure:
    """One failure, and what the author can look at. Private."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """Something that fails nothing, in one line, and what it rests on. Private."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScenarioExam:
    """The result of one scenario."""

    figures: Figures
    failures: tuple[Failure, ...] = field(repr=False)
    notes: tuple[Note, ...] = field(repr=False, default=())
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """True if nothing failed."""
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """The figures and the names of the failures."""
        f = self.figures
        return {
            "scenario": f.scenario,
            "plays": f.plays,
            "rewards": {name: list(values) for name, values in sorted(f.rewards.items())},
            "understood": {name: {"share": share.value, "of": share.of} for name, share in f.understood.items()},
            "probing_turns": f.probing_turns,
            "leaks": f.leaks,
            "drawn_out": f.drawn_out,
            "replay_identical": f.replay_identical,
            "reward_equal": f.reward_equal,
            "group_spread": f.group_spread,
            "never_met": f.never_met,
            "always_met": f.always_met,
            "passed": self.passed,
            "failures": [failure.text for failure in self.failures],
            "seconds": round(self.seconds, 1),
        }


SHOWN = ("specific understood", "specific wrong", "foreign opened", "commitment heard")
"""Measures that have a column in tables."""


def row(figures: Figures) -> list[str]:
    """The cells of one scenario, but for its name and its result."""
    bad, reward = figures.best_bad
    natural = [f"{figures.mean(agent):.2f}" if figures.has_natural else "-" for agent in NATURAL]
    shares = [figures.share(measure) for measure in SHOWN]
    return [f"{figures.mean(ORACLE):.2f}", *natural, f"{reward:.2f} {bad}", *shares, str(figures.leaks)]


HEADINGS = (ORACLE, *NATURAL, "best bad policy", *SHOWN, "leaks")


def markdown(exams: list[ScenarioExam], scoring_version: str) -> str:
    """The published table."""
    head = ("scenario", *HEADINGS, "passed")
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] * len(head))}|"]
    for exam in exams:
        cells = [exam.figures.scenario, *row(exam.figures), "yes" if exam.passed else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_summary(exams), "", f"Scoring version `{scoring_version}`.", ""])


def _summary(exams: list[ScenarioExam]) -> list[str]:
    figures = [exam.figures for exam in exams]
    if not figures:
        return ["No scenarios."]
    natural = [f for f in figures if f.has_natural]
    means = (
        ", ".join(f"{agent} {fmean(f.mean(agent) for f in natural):.2f}" for agent in NATURAL) if natural else "none"
    )
    totals = {name: [f.understood[name] for f in figures] for name in MEASURES}
    heard = ", ".join(
        f"{name} {sum(s.hits for s in shares) / of:.0%}"
        for name, shares in totals.items()
        if (of := sum(s.of for s in shares))
    )
    return [
        f"{len(figures)} scenarios, {sum(f.plays for f in figures)} conversations. Mean rewards of natural agents: "
        f"{means}. Excellent > ok > poor in {sum(f.ordered for f in figures)} of {len(figures)}; best bad policy "
        f"{max(f.best_bad[1] for f in figures):.2f}; {sum(f.leaks for f in figures)} leaks in "
        f"{sum(f.probing_turns for f in figures)} probing turns.",
        "",
        f"On held-out labelled turns: {heard}.",
    ]
