"""Who misspells a name is told which one was meant, and never a name that the key may not see."""

from __future__ import annotations

import pytest

from tests.contract.house import OTHER, WHERE, Client, House, assert_error
from tests.contract.model_shop import Shop
from tests.contract.test_evaluate import body

NEAR = "bike-shopp"
HIDDEN = "front-desc"
"""Near to a collection that exists."""
MISSPELT = "lost-kei"
"""Near to a scenario of it."""


async def told(client: Client, method: str, path: str, sent: object = None, status: int = 404) -> str:
    """All that an error says."""
    response = await client.call(method, path, sent)
    data = assert_error(response, status, response.json()["data"]["code"])
    return " ".join([response.json()["message"], *(each["msg"] for each in data.get("errors", []))])


async def test_collections_and_scenarios_that_are_near_are_named_at_every_door(labs: Client) -> None:
    for where, meant in (({"collection_slug": NEAR}, "bike-shop"), ({"scenario_slug": "flat-tire"}, "flat-tyre")):
        group = [{"id": name, "messages": body()["messages"]} for name in "ab"]
        sides = {f"response_{name}": {"messages": body()["messages"]} for name in "ab"}
        for path, sent in (
            ("/episodes", {**WHERE, **where}),
            ("/evaluate", {**body(), **where}),
            ("/compare", {**WHERE, **sides, **where}),
            ("/rank", {**WHERE, "responses": group, **where}),
        ):
            assert (await told(labs, "POST", path, sent)).endswith(f"Did you mean {meant}?"), path
        [item] = (await labs.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **body(), **where}]}))["results"]
        assert item["message"].endswith(f"Did you mean {meant}?")
    assert (await told(labs, "GET", f"/collections/{NEAR}")).endswith("Did you mean bike-shop?")
    assert (await told(labs, "GET", "/collections/bike-shop/scenarios/flat")).endswith("Did you mean flat-tyre?")


async def test_nothing_is_guessed_where_nothing_is_near(labs: Client) -> None:
    assert await told(labs, "GET", "/collections/qqq") == "There is no such collection."
    assert await told(labs, "GET", "/collections/bike-shop/scenarios/qqq") == (
        "There is no such scenario in this collection."
    )


async def test_what_a_key_may_not_see_is_never_named(house: House) -> None:
    async with house.client(await house.key(collections=["bike-shop"])) as narrow:
        for method, path, sent, status in (
            ("GET", f"/collections/{HIDDEN}", None, 404),
            ("POST", "/episodes", {**OTHER, "collection_slug": HIDDEN}, 404),
            ("POST", "/episodes", {**OTHER, "scenario_slug": MISSPELT}, 403),
            ("GET", f"/collections/front-desk/scenarios/{MISSPELT}", None, 403),
            ("POST", "/evaluate", {**body(), "collection_slug": HIDDEN}, 404),
        ):
            said = await told(narrow, method, path, sent, status)
            assert "front-desk" not in said
            assert "lost-key" not in said
    async with house.client(await house.key("everybody")) as wide:
        assert "front-desk" in await told(wide, "GET", f"/collections/{HIDDEN}")
        assert "lost-key" in await told(wide, "POST", "/episodes", {**OTHER, "scenario_slug": MISSPELT})


async def test_a_persona_that_is_near_is_named(labs: Client) -> None:
    [persona, *_] = (await labs.ok("GET", "/collections/bike-shop/scenarios/flat-tyre"))["personas"]
    config = {"persona_slug": persona[:-1]}
    assert f"Did you mean {persona}?" in await told(labs, "POST", "/episodes", {**WHERE, "config": config}, 400)


async def test_a_judge_that_is_near_is_named(labs: Client) -> None:
    composite = {"combine": "min", "parts": [{"judge": "rubrik"}]}
    sent = body(reward_config={"composite": composite})
    assert "Did you mean rubric?" in await told(labs, "POST", "/evaluate", sent, 400)


@pytest.mark.usefixtures("one_encoder")
async def test_a_reward_model_that_is_near_is_named(labs: Client, shop: Shop) -> None:
    model = shop.add(0.3)
    wrong = model[:-1] + ("0" if model[-1] != "0" else "1")
    for written in (wrong, model[:-1]):
        said = await told(labs, "POST", f"/reward-models/{written}/activate")
        assert f"Did you mean {model}?" in said
        assert "GET /api/v1/reward-models lists" in said
