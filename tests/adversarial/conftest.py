"""What all proofs here share: the packaged scenarios, the packaged reader, and conversations played with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from benchmarks.plays import Base, all_scenarios, bases
from personas.reading.reader import Reader
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import build_scorer, load_matcher, load_reader, load_scenarios
from reward_server.settings import Settings
from scenarios.library import Library, natural_agents

FEW = ("customer-support/charged-twice", "clinical-intake/chest-tightness-at-work", "tutoring/two-discounts")
"""Scenarios of the fast tests."""
FEW_AGENTS = ("oracle", "half", "poor")
COLLECTIONS = (
    "clinical-intake", "customer-support", "it-helpdesk", "negotiation", "sales-discovery", "tutoring",
)  # fmt: skip
"""The slow tests go through them one by one."""
TalksOf = Callable[[str], list[Base]]


@pytest.fixture(scope="package")
def library() -> Library:
    return load_scenarios(None)


@pytest.fixture(scope="package")
def reader() -> Reader:
    return load_reader(Settings())


@pytest.fixture(scope="package")
def scorer(library: Library, reader: Reader) -> Iterator[Scorer]:
    with ThreadPoolExecutor(1) as threads:
        yield build_scorer(library, load_matcher(Settings()), reader, threads, disclosure=FULL_DISCLOSURE)


@pytest.fixture(scope="package")
def talks_of(library: Library, reader: Reader) -> TalksOf:
    """Strong, middling and weak conversations of every scenario of a collection."""
    natural = natural_agents(library)

    @cache
    def played(collection: str) -> list[Base]:
        scenarios = [each for each in all_scenarios(library) if each.collection == collection]
        return [base for each in scenarios for base in bases(each, reader, natural.get(each.name))]

    return played


@pytest.fixture(scope="package")
def few_talks(library: Library, reader: Reader) -> list[Base]:
    """Those of a few scenarios."""
    natural = natural_agents(library)
    opened = [library.vault.open(*name.split("/")) for name in FEW]
    return [base for each in opened for base in bases(each, reader, natural.get(each.name), FEW_AGENTS)]
