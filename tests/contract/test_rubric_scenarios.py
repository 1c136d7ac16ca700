"""Scenarios without a persona in a collection: scored like any other, and never played."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from personas.reading.matcher import Matcher
from scenarios.library import load_library
from tests.contract.house import COLLECTION, COLLECTIONS, Client, assert_error, running_house
from tests.rubrics.talks import LOGS, RUBRIC

WHERE = {"collection_slug": COLLECTION, "scenario_slug": "answers"}


@pytest.fixture
async def client(data: Path, matcher: Matcher, tmp_path: Path) -> AsyncIterator[Client]:
    root = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, root)
    (root / COLLECTION / "answers.yaml").write_text(yaml.safe_dump(RUBRIC))
    async with running_house(data, matcher, load_library(root)) as house, house.client() as client:
        yield client


async def test_it_is_scored_under_its_name(client: Client) -> None:
    named = await client.ok("POST", "/evaluate", {**WHERE, "messages": LOGS["excellent"]})
    given = await client.ok("POST", "/evaluate", {"rubric": RUBRIC, "messages": LOGS["excellent"]})
    assert named["reward"] == given["reward"]
    assert "undecided" not in named["metadata"]
    shown = await client.ok("GET", f"/collections/{COLLECTION}/scenarios/answers")
    assert shown["personas"] == []


async def test_it_is_not_played(client: Client) -> None:
    refused = assert_error(await client.call("POST", "/episodes", WHERE), 400, "invalid_request")
    assert refused["request_id"]
    models = {each["id"] for each in (await client.http.get("/v1/models")).json()["data"]}
    assert f"judge:{COLLECTION}/answers" in models
    assert f"persona:{COLLECTION}/answers" not in models
