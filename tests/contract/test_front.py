"""The page at `/`."""

from __future__ import annotations

import pytest

from tests.contract.house import Client

pytestmark = pytest.mark.one_house


async def test_the_front_page_says_what_this_is_and_links_what_there_is(labs: Client) -> None:
    response = await labs.http.get("/", headers={"accept": "text/html,application/xhtml+xml"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    for path in ("/console", "/docs", "/openapi.json", "/readyz"):
        assert f'href="{path}"' in response.text
        assert (await labs.http.get(path, follow_redirects=True)).status_code != 404


async def test_programs_get_the_same_as_json(labs: Client) -> None:
    body = (await labs.http.get("/", headers={"accept": "application/json"})).json()
    assert body["name"] == "Labs"
    assert body["links"]["docs"] == "/docs"
