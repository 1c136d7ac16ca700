"""Paths as people and proxies write them: a slash at the end, a prefix in front."""

from __future__ import annotations

from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from scenarios.library import Library
from tests.contract.house import WHERE, Client, Json, running_house
from tests.contract.test_doors import LAST, openrlhf, slime
from tests.contract.test_evaluate import GOOD

EVALUATION = {**WHERE, "messages": GOOD}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/evaluate/", EVALUATION),
        ("/api/v1/compat/openrlhf/get_reward/", openrlhf(LAST)),
        ("/api/v1/compat/slime/", slime(LAST)),
    ],
)
async def test_a_slash_at_the_end_is_no_other_path(labs: Client, path: str, body: Json) -> None:
    assert (await labs.http.post(path, json=body)).status_code == 200


@pytest.mark.parametrize("kept", ["/labs", ""])
async def test_behind_a_proxy_with_a_prefix(data: Path, matcher: Matcher, library: Library, kept: str) -> None:
    async with running_house(data, matcher, library, path_prefix="/labs") as house, house.client() as labs:
        assert (await labs.http.post(f"{kept}/api/v1/evaluate", json=EVALUATION)).status_code == 200
        page = (await labs.http.get(f"{kept}/docs")).text
        assert "/labs/docs/assets/swagger-ui.css" in page
        assert "/labs/openapi.json" in page
        assert "'/openapi.json" not in page
        assert (await labs.http.get(f"{kept}/docs/assets/swagger-ui.css")).status_code == 200
        assert (await labs.http.get(f"{kept}/openapi.json")).json()["servers"] == [{"url": "/labs"}]
