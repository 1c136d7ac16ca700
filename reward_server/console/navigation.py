"""The menu: the parts of the console that a key may open, in the order of a first visit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reward_server.api.access import access_of
from reward_server.api.routes import (
    agents,
    episodes,
    evaluate,
    jobs,
    keys,
    labs,
    own_scenarios,
    preferences,
    reward_models,
    training_runs,
    webhooks,
)
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A line of the menu, for keys with one of the scopes."""

    name: str
    path: str
    scopes: tuple[Scope, ...]
    also: tuple[str, ...] = ()
    """Other paths that belong to it."""
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """Lines that belong together."""

    name: str
    entries: tuple[MenuEntry, ...]


def _entry(name: str, path: str, like: Callable[..., Any], *also: str) -> MenuEntry:
    return MenuEntry(name, path, access_of(like).scopes, also)


GROUPS = (
    MenuGroup("Play", (_entry("Try it", "/console", episodes.create_episode, "/console/scenarios", "/console/play"),)),
    MenuGroup(
        "Author", (_entry("Own scenarios", "/console/author", own_scenarios.list_own_scenarios, "/console/author"),)
    ),
    MenuGroup(
        "Read",
        (
            _entry("Episodes", "/console/episodes", episodes.list_episodes, "/console/compare"),
            _entry("Evaluations", "/console/evaluations", evaluate.read_evaluation),
            _entry("Charts", "/console/charts", episodes.list_episodes),
        ),
    ),
    MenuGroup(
        "Judge",
        (
            _entry("Leaderboard", "/console/leaderboard", agents.read_leaderboard),
            _entry("Label pairs", "/console/label", preferences.add_preference, "/console/labels"),
            _entry("Judges and people", "/console/agreement", preferences.preference_agreement),
        ),
    ),
    MenuGroup(
        "Run",
        (
            _entry("Jobs", "/console/jobs", jobs.list_jobs),
            _entry("Training runs", "/console/training", training_runs.list_training_runs),
            _entry("Reward models", "/console/models", reward_models.list_reward_models),
            _entry("Webhooks", "/console/webhooks", webhooks.list_webhooks),
        ),
    ),
    MenuGroup(
        "Operate",
        (
            _entry("Health", "/console/health", labs.read_usage),
            _entry("Usage", "/console/usage", labs.read_usage),
            _entry("Keys", "/console/keys", keys.list_keys),
            _entry("Audit log", "/console/audit", keys.read_audit),
        ),
    ),
)


def menu(lab: Lab, path: str) -> list[MenuGroup]:
    """The pages that this key may open; the entry that leads to where the visitor is is marked."""
    return [
        MenuGroup(group.name, entries)
        for group in GROUPS
        if (entries := tuple(_marked(each, path) for each in group.entries if not lab.scopes.isdisjoint(each.scopes)))
    ]


def here(lab: Lab, path: str) -> MenuEntry | None:
    """The entry of the menu that a page belongs to."""
    return next((entry for group in menu(lab, path) for entry in group.entries if entry.is_here), None)


def _marked(entry: MenuEntry, path: str) -> MenuEntry:
    below = [each for each in (entry.path, *entry.also) if each != "/console"]
    is_here = path == entry.path or any(path == each or path.startswith(f"{each}/") for each in below)
    return replace(entry, is_here=is_here)
