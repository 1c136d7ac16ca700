"""Environments and tasks of the Open Reward Standard, which stores none: they follow from the catalog.

A collection is an environment, and so is each of its scenarios, as `collection/scenario`. A task is a scenario with a
seed. The splits are ranges of seeds that never meet; those of `test` begin where the learner's held-out seeds begin.
Of a scenario with variants, `train` plays those for training and `test` those for evaluation. A
split goes through the scenarios before it takes the next seed, so that its first tasks are of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reward_server.access import collection_for, scenario_for, visible_collections
from reward_server.auth.lab import Lab
from reward_server.errors import CollectionNotFound, FieldProblem, InvalidRequest
from scenarios.library import Catalog, PublicScenario

ANY = "env"
"""What TRL's adapter calls an environment that was given no name: the first one."""
FIRST_HELD_OUT_SEED = 2**40
MAX_NAME_CHARACTERS = 300
MAX_TASKS = 20_000
"""In one answer."""

SplitName = Literal["train", "test"]


@dataclass(frozen=True)
class Seeds:
    """The seeds that each scenario has in a split."""

    first: int
    count: int


VARIANTS: dict[SplitName, str] = {"train": "train", "test": "eval"}
"""Split here -> that of a scenario's variants."""
SPLITS: dict[SplitName, Seeds] = {"train": Seeds(0, 1000), "test": Seeds(FIRST_HELD_OUT_SEED, 100)}


@dataclass(frozen=True)
class Environment:
    """Scenarios of one collection."""

    collection: str
    scenarios: Mapping[str, tuple[str, ...]]
    """Each with the splits of its variants."""
    name: str

    def count(self, split: str) -> int:
        """The number of tasks of a split."""
        return len(self.scenarios) * _seeds(split).count

    def task(self, split: str, index: int) -> dict[str, Any]:
        """A task; a negative index counts from the end.

        Raises:
            InvalidRequest: there is no such split, or no such task in it.
        """
        count = self.count(split)
        if not -count <= index < count:
            raise InvalidRequest(errors=[FieldProblem(("index",), f"The split has {count} tasks.")])
        seed, number = divmod(index % count, len(self.scenarios))
        scenario = list(self.scenarios)[number]
        task = {
            "collection_slug": self.collection,
            "scenario_slug": scenario,
            "seed": _seeds(split).first + seed,
        }
        variants = VARIANTS["test" if split == "test" else "train"]
        return {**task, "split": variants} if variants in self.scenarios[scenario] else task

    def tasks(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """The tasks of a slice of a split.

        Raises:
            InvalidRequest: there is no such split, or the slice has too many tasks for one answer.
        """
        wanted = range(*slice(start, stop).indices(self.count(split)))
        if len(wanted) > MAX_TASKS:
            raise InvalidRequest(f"These are more than {MAX_TASKS} tasks; ask for a smaller range.")
        return [self.task(split, index) for index in wanted]


def environment_of(lab: Lab, catalog: Catalog, name: str) -> Environment:
    """The environment of that name; `ANY` is the first one that the key may use.

    Raises:
        NotFound: there is none of that name.
        Forbidden: the key may not use it.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        raise CollectionNotFound
    if name == ANY:
        name = next((found.card.slug for found in visible_collections(lab, catalog)), name)
    collection, slash, scenario = name.lower().partition("/")
    found = collection_for(lab, catalog, collection)
    if slash:
        return _one(collection, scenario_for(lab, catalog, collection, scenario))
    if not found.scenarios:
        raise CollectionNotFound("This collection has no scenarios.")
    return Environment(collection, {slug: each.splits for slug, each in found.scenarios.items()}, collection)


def names_for(lab: Lab, catalog: Catalog) -> list[str]:
    """The environments that the key may use: collections, then single scenarios."""
    visible = list(visible_collections(lab, catalog))
    return [found.card.slug for found in visible] + [
        _one(found.card.slug, scenario).name for found in visible for scenario in found.scenarios.values()
    ]


def _one(collection: str, scenario: PublicScenario) -> Environment:
    slug = scenario.card.slug
    return Environment(collection, {slug: scenario.splits}, f"{collection}/{slug}")


def _seeds(split: str) -> Seeds:
    found = next((seeds for name, seeds in SPLITS.items() if name == split), None)
    if found is None:
        raise InvalidRequest(errors=[FieldProblem(("split",), f"Must be one of {', '.join(SPLITS)}.")])
    return found
