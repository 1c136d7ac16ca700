"""The menu: the parts of the console that a key may open, in the order of a first visit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reward_server.api.operation import operation_of
from reward_server.api.routes import episodes
from reward_server.coordination.lab import Lab
from reward_server.coordination.scopes import Scope


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the menu, for keys with one of the scopes."""

    name: str
    path: str
    scopes: tuple[Scope, ...]
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that belong together."""

    name: str
    entries: tuple[Entry, ...]


def _entry(name: str, path: str, like: Callable[..., Any]) -> Entry:
    return Entry(name, path, operation_of(like).scopes)


GROUPS = (
    Group("Play", (_entry("Try it", "/console", episodes.create_episode),)),
    Group("Read", (_entry("Episodes", "/console/episodes", episodes.list_episodes),)),
)


def menu(lab: Lab, path: str) -> list[Group]:
    """What this key may open; the entry that leads to where the visitor is is marked."""
    allowed = [
        Group(group.name, tuple(each for each in group.entries if not lab.scopes.isdisjoint(each.scopes)))
        for group in GROUPS
    ]
    here = _nearest([entry.path for group in allowed for entry in group.entries], path)
    return [
        Group(group.name, tuple(replace(each, is_here=each.path == here) for each in group.entries))
        for group in allowed
        if group.entries
    ]


def _nearest(paths: list[str], path: str) -> str:
    """The longest of the paths that this one is below; pages of play are below the first."""
    below = [each for each in paths if path == each or path.startswith(f"{each}/")]
    return max(below, key=len, default="")
