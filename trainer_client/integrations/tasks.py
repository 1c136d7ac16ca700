"""The scenario and the seed of an episode, as a line that fits into any trainer's data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer_client.client import LabsClient
from trainer_client.wire.episodes import Split

HELD_OUT = 2**40
"""The first seed that is never trained on, here as for the learner."""
_LINE = re.compile(r"labs://([^/\s]+)/([^?\s]+)\?seed=(\d+)(?:&split=(train|eval))?")


@dataclass(frozen=True)
class Task:
    """An episode that is to be played. The same seed and split give the same persona and case: a group shares them."""

    collection: str
    scenario: str
    seed: int
    split: Split | None = None

    def line(self) -> str:
        """As a prompt of a dataset holds it; the policy never reads it."""
        split = f"&split={self.split}" if self.split else ""
        return f"labs://{self.collection}/{self.scenario}?seed={self.seed}{split}"

    @classmethod
    def read(cls, prompt: Any) -> Task:
        """The task that a prompt names: a text, or messages."""
        text = prompt if isinstance(prompt, str) else " ".join(str(message.get("content")) for message in prompt)
        match = _LINE.search(text)
        if match is None:
            raise ValueError(
                "a prompt names no task of Labs; make the dataset with `dataset_rows`, whose prompts are"
                " labs://COLLECTION/SCENARIO?seed=NUMBER"
            )
        split: Split | None = None if match[4] is None else ("train" if match[4] == "train" else "eval")
        return cls(match[1], match[2], int(match[3]), split)


def dataset_rows(
    client: LabsClient, scenarios: Sequence[str], seeds: Iterable[int], split: Split | None = None
) -> list[dict[str, Any]]:
    """A row for each scenario and seed. A scenario is `collection/scenario`, or a collection for all of its scenarios.

    Held-out rows have seeds from `HELD_OUT` on, and the `split` `eval`: variants that are never trained on.
    """
    names = list(_resolved(client, scenarios))
    return [
        {
            "prompt": [{"role": "user", "content": Task(*name, seed, split).line()}],
            "label": Task(*name, seed, split).line(),
            "scenario": "/".join(name),
            "seed": seed,
        }
        for seed in seeds
        for name in names
    ]


def _resolved(client: LabsClient, scenarios: Sequence[str]) -> Iterator[tuple[str, str]]:
    catalog = client.catalog()
    known: Mapping[str, list[str]] = {
        each.slug: [scenario.slug for scenario in each.scenarios] for each in catalog.collections
    }
    for name in scenarios:
        collection, _, scenario = name.partition("/")
        if collection not in known or (scenario and scenario not in known[collection]):
            there = ", ".join(f"{slug}/{each}" for slug, slugs in known.items() for each in slugs)
            raise ValueError(f"the server has no scenario {name!r}; it has {there}")
        yield from ((collection, slug) for slug in ([scenario] if scenario else known[collection]))
