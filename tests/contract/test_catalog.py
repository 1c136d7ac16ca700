"""GET /catalog and its parts: what exists, and nothing hidden."""

from __future__ import annotations

import pytest

from tests.contract.house import Client, assert_error

pytestmark = pytest.mark.one_house

SCENARIO_FIELDS = {"slug", "name", "description", "dimensions", "max_turns", "tools"}


async def test_the_catalog_has_the_documented_fields(labs: Client) -> None:
    body = await labs.ok("GET", "/catalog")
    assert set(body) == {"collections", "request_id"}
    assert [collection["slug"] for collection in body["collections"]] == ["bike-shop", "front-desk"]
    for collection in body["collections"]:
        assert set(collection) == {"slug", "name", "description", "version", "scenarios"}
        for scenario in collection["scenarios"]:
            assert set(scenario) == SCENARIO_FIELDS
    [scenario] = body["collections"][0]["scenarios"]
    assert scenario["dimensions"] == ["D1_InformationGathering", "D2_GoalProgress"]
    assert (scenario["max_turns"], scenario["tools"]) == (8, 2)


async def test_collections_and_scenarios_can_be_read_one_by_one(labs: Client) -> None:
    catalog = await labs.ok("GET", "/catalog")
    assert (await labs.ok("GET", "/collections"))["collections"] == catalog["collections"]
    collection = await labs.ok("GET", "/collections/bike-shop")
    assert {k: v for k, v in collection.items() if k != "request_id"} == catalog["collections"][0]
    scenario = await labs.ok("GET", "/collections/bike-shop/scenarios/flat-tyre")
    assert set(scenario) == SCENARIO_FIELDS | {"personas", "tool_definitions", "request_id"}


async def test_unknown_parts_are_404(labs: Client) -> None:
    assert_error(await labs.call("GET", "/collections/unknown"), 404, "collection_not_found")
    assert_error(await labs.call("GET", "/collections/unknown/scenarios/flat-tyre"), 404, "collection_not_found")
    assert_error(await labs.call("GET", "/collections/bike-shop/scenarios/unknown"), 404, "scenario_not_found")
