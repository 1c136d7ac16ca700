"""GET /reward-models and GET /calibrations in pages, as GET /episodes; without a limit they are whole."""

from __future__ import annotations

import pytest

from tests.contract.house import Client, House, assert_error
from tests.contract.model_shop import Shop
from tests.contract.test_calibrations import fitted

pytestmark = pytest.mark.usefixtures("one_encoder")

LISTS = [("/reward-models", "reward_models"), ("/calibrations", "calibrations")]
"""With the name that each had before there were pages."""


@pytest.fixture
def stocked(house: House, shop: Shop) -> dict[str, list[str]]:
    """Five entries of each list, the newest first; all calibrations were made in the same moment."""
    models = [shop.add(tenth / 10) for tenth in range(1, 6)]
    calibrations = [fitted(house, f"rm_{number:012x}").id for number in range(5)]
    return {"/reward-models": models[::-1], "/calibrations": sorted(calibrations, reverse=True)}


@pytest.mark.parametrize(("path", "old_name"), LISTS)
async def test_pages_follow_each_other_and_none_is_lost(
    labs: Client, stocked: dict[str, list[str]], path: str, old_name: str
) -> None:
    found: list[str] = []
    sizes: list[int] = []
    cursor = ""
    while True:
        page = await labs.ok("GET", f"{path}?limit=2{cursor}")
        assert page[old_name] == page["data"]
        sizes.append(len(page["data"]))
        found += [each["id"] for each in page["data"]]
        if "next_cursor" not in page:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sizes == [2, 2, 1]
    assert found == stocked[path]


@pytest.mark.parametrize(("path", "old_name"), LISTS)
async def test_without_a_limit_all_that_follow_are_one_page(
    labs: Client, stocked: dict[str, list[str]], path: str, old_name: str
) -> None:
    whole = await labs.ok("GET", path)
    assert set(whole) == {"data", old_name, "request_id"}
    assert [each["id"] for each in whole[old_name]] == stocked[path]
    cursor = (await labs.ok("GET", f"{path}?limit=1"))["next_cursor"]
    rest = await labs.ok("GET", f"{path}?cursor={cursor}")
    assert [each["id"] for each in rest["data"]] == stocked[path][1:]
    assert "next_cursor" not in rest
    assert "next_cursor" not in await labs.ok("GET", f"{path}?limit=5")


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(("path", "old_name"), LISTS)
async def test_made_up_limits_and_cursors_are_400(house: House, path: str, old_name: str) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("other")) as other:
        for limit in ("0", "101", "-1", "many", "1.5"):
            assert_error(await acme.call("GET", f"{path}?limit={limit}"), 400, "invalid_request")
        for cursor in ("", "x", "AAAA", "a" * 1000):
            assert_error(await acme.call("GET", f"{path}?cursor={cursor}"), 400, "invalid_cursor")
        own = (await acme.ok("GET", f"{path}?limit=1"))["next_cursor"]
        assert_error(await other.call("GET", f"{path}?cursor={own}"), 400, "invalid_cursor")
        [elsewhere] = [each for each, _ in LISTS if each != path]
        for another in (elsewhere, "/episodes"):
            assert_error(await acme.call("GET", f"{another}?cursor={own}"), 400, "invalid_cursor")
        assert (await acme.ok("GET", f"{path}?cursor={own}"))[old_name]


async def test_an_empty_list_is_an_empty_page(labs: Client) -> None:
    for path, old_name in LISTS:
        page = await labs.ok("GET", f"{path}?limit=1")
        assert (page["data"], page[old_name], "next_cursor" in page) == ([], [], False)
