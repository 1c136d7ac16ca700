"""Profiles: named sets of settings over a preset or a file, from careful to thorough.

A profile scales or sets a few keys. What a caller sets with `--set` comes after it and wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from learner.suggestions import nearest


@dataclass(frozen=True)
class Times:
    """A factor of the value that there would be without the profile; whole numbers stay whole and at least 1."""

    factor: float

    def of(self, value: float) -> float:
        """The scaled value."""
        return max(1, round(value * self.factor)) if isinstance(value, int) else value * self.factor


@dataclass(frozen=True)
class Profile:
    """Changes by `section.key`."""

    about: str
    changes: Mapping[str, Times | Any] = field(default_factory=dict)


PROFILES: dict[str, Profile] = {
    "conservative": Profile(
        "small, slowly starting and ending steps: for a policy that must not lose what it can do",
        {
            "optim.learning_rate": Times(0.5),
            "optim.warmup_updates": 5,
            "optim.schedule": "linear",
            "optim.clip_norm": Times(0.5),
            "optim.minibatches": 1,
        },
    ),
    "balanced": Profile("the settings of the preset or the file as they are"),
    "aggressive": Profile(
        "large steps, several for each batch: for a first look at whether something can be learned at all",
        {"optim.learning_rate": Times(2.0), "optim.minibatches": Times(2.0), "evaluation.every": Times(0.5)},
    ),
    "research": Profile(
        "measure more: evaluations twice as often with twice the episodes, more dialogues, every evaluation kept",
        {
            "evaluation.every": Times(0.5),
            "evaluation.episodes": Times(2.0),
            "evaluation.samples": Times(2.0),
            "run.checkpoint_every": Times(0.5),
            "run.keep": Times(4.0),
        },
    ),
}


def profile(name: str) -> Profile:
    """A profile by name; raises ValueError with the likely one for a name that is none."""
    if name not in PROFILES:
        raise ValueError(f"profile {name!r}: {nearest(name, PROFILES)}")
    return PROFILES[name]


def applied(content: Mapping[str, Any], chosen: Profile, plain: BaseModel) -> dict[str, Any]:
    """The content of a configuration file with a profile; `plain` is what it means without one."""
    found = {name: dict(section) if isinstance(section, Mapping) else section for name, section in content.items()}
    for key, change in chosen.changes.items():
        section, _, name = key.partition(".")
        before = getattr(getattr(plain, section), name)
        found.setdefault(section, {})[name] = change.of(before) if isinstance(change, Times) else change
    return found


def told(chosen: Profile, plain: BaseModel, config: BaseModel) -> list[str]:
    """The changes of the profile, a line for each key: name, value without it and value with it."""
    lines = []
    for key in chosen.changes:
        section, _, name = key.partition(".")
        before, after = (getattr(getattr(each, section), name) for each in (plain, config))
        if before != after:
            lines.append(f"{key:24} {before} -> {after}")
    return lines
