"""Variants over HTTP: the seed and the split draw one, and its transcript gets the same reward through /evaluate."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from scenarios.library import load_library
from tests.contract.house import (
    COLLECTION,
    COLLECTIONS,
    SCENARIO,
    WHERE,
    Client,
    Json,
    agent,
    assert_error,
    running_house,
)

ASK = "How did the tyre go flat?"
BOOK = agent("I book that for you.", {"name": "repair", "input": {"value": "full_service"}})
VARIANT = """variants:
  - id: quokka_slow_leak
    split: eval
    about: The valve leaks, so only a service helps.
    openings: ["Hello, the tyre of my bike is soft again every morning.", "Hi, my tyre goes soft over night."]
    facts:
      - {id: quokka_flat, says: ["the tyre of my bike is soft again every morning", "my tyre goes soft over night"]}
      - {id: quokka_glass, says: [Nothing at all happened to it on the road., It just loses air by itself.]}
    criteria:
      - {id: quokka_decided, check: {tool: {tool: repair, value: [full_service], after: [quokka_glass]}}}
"""


@pytest.fixture
async def labs(data: Path, matcher: Matcher, tmp_path: Path) -> AsyncIterator[Client]:
    root = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, root)
    (root / COLLECTION / f"{SCENARIO}.variants.yaml").write_text(VARIANT)
    async with running_house(data, matcher, load_library(root)) as house, house.client() as client:
        yield client


async def played(labs: Client, split: str) -> tuple[Json, Json]:
    episode = await labs.create(config={"split": split})
    await labs.say(episode, ASK)
    return episode, await labs.say(episode, BOOK)


async def test_a_split_is_played_and_evaluated_as_its_variant(labs: Client) -> None:
    rewards = {}
    for split in ("train", "eval"):
        episode, last = await played(labs, split)
        opening = episode["initial_observation"]["content"]
        assert ("soft" in opening) == (split == "eval")
        messages = await labs.log(episode)
        found = await labs.ok("POST", "/evaluate", {**WHERE, "messages": messages, "agent_role": "user"})
        assert found["reward"] == last["reward"]
        rewards[split] = last["reward"]
    assert rewards["eval"] > rewards["train"]


async def test_the_catalog_names_the_splits_and_nothing_else_of_variants(labs: Client) -> None:
    path = f"/collections/{COLLECTION}/scenarios/{SCENARIO}"
    card = await labs.ok("GET", path)
    assert card["splits"] == ["eval", "train"]
    assert "slow_leak" not in str(card)
    other = await labs.ok("GET", "/collections/front-desk/scenarios/lost-key")
    assert "splits" not in other


async def test_another_split_is_refused(labs: Client) -> None:
    body = {**WHERE, "config": {"split": "test"}}
    assert_error(await labs.call("POST", "/episodes", body), 400, "invalid_request")


async def test_tasks_of_ors_name_the_split(labs: Client) -> None:
    for split, wanted in (("train", "train"), ("test", "eval")):
        path = f"/compat/ors/{COLLECTION}/{SCENARIO}/task"
        found = await labs.http.post(f"/api/v1{path}", json={"split": split, "index": 0})
        assert found.json()["task"]["split"] == wanted, found.text
