"""A turn that was understood wrongly becomes a labelled turn: on disk, in an own collection, or as a download."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import EVERY
from reward_server.store.own_collection_records import CheckStatus
from scenarios.library import load_library
from scenarios.template import begin
from scenarios.turns import load_turns
from tests.console.conftest import Visitor
from tests.console.test_admission import visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House, running_house
from tests.contract.test_variants import VARIANT
from tests.faults.server_process import COLLECTIONS, server_process

__all__ = ["data", "empty_database", "house", "library", "matcher"]
ASKED = 'And "what" <b>crunched</b> under you?'


async def test_on_disk_it_is_a_line_of_the_file(data: Path, matcher: Matcher, tmp_path: Path) -> None:
    root = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, root)
    (root / "bike-shop" / "flat-tyre.variants.yaml").write_text(VARIANT)
    async with (
        running_house(data, matcher, load_library(root), scenarios=root) as house,
        house.client() as labs,
        visiting(house) as browser,
    ):
        # The card has splits, so one can be chosen.
        assert '<select name="split">' in (await browser.get("/scenarios/bike-shop/flat-tyre")).text
        assert '<select name="split">' not in (await browser.get("/scenarios/front-desk/lost-key")).text
        begun = await browser.post("/scenarios/bike-shop/flat-tyre", split="eval")
        episode = begun.headers["location"].rpartition("/")[2]
        page = await browser.get(f"/play/{episode}")
        assert "soft" in page.text
        await browser.post(f"/play/{episode}/turns", content=ASKED)
        path = f"/episodes/{episode}/turns/1/wrong"
        for shown in (f"/play/{episode}", f"/episodes/{episode}"):
            assert path in (await browser.get(shown)).text
        form = (await browser.get(path)).text
        assert "quokka_glass" in form
        assert "<b>crunched</b>" not in form
        refused = await browser.post(path, kind="specific")
        assert refused.status_code == 400
        assert "asks for one fact" in refused.text
        assert not (root / "bike-shop" / "flat-tyre.turns.jsonl").exists()
        for _ in range(2):
            assert (await browser.post(path, kind="specific", asks="quokka_glass")).status_code == 303
        first, second = load_turns(root / "bike-shop" / "flat-tyre.turns.jsonl")
        assert (first.turn, first.asks, first.kind) == (ASKED, ("quokka_glass",), "specific")
        assert first.line == (await labs.ok("GET", f"/episodes/{episode}"))["messages"][0]["content"]
        assert first == second
        assert load_library(root).vault.names()
        assert (await browser.post(path, kind="specific", asks="nothing_of_it")).status_code == 400
        assert (await browser.get(f"/episodes/{episode}/turns/9/wrong")).status_code == 404


async def test_of_an_own_collection_it_is_a_new_version(house: House, tmp_path: Path) -> None:
    begin("shop/noise", tmp_path)
    files = {path.name: path.read_text() for path in (tmp_path / "shop").iterdir()}
    key = await house.key("acme", scopes=EVERY)
    async with house.client(key) as owner, visiting(house) as browser:
        await owner.ok("POST", "/scenarios", {"collection": "shop", "files": files})
        async with house.store.transaction() as unit:
            row = (await unit.own_collections.of("acme", "shop"))[0]
            await unit.own_collections.settle(row, CheckStatus.PASSED, [])
        await owner.ok("GET", "/scenarios/shop")
        await browser.enter(key)
        episode = await owner.ok("POST", "/episodes", {"collection_slug": "shop@acme", "scenario_slug": "noise"})
        await owner.say(episode, "Lovely weather today.")
        path = f"/episodes/{episode['episode_id']}/turns/1/wrong"
        assert (await browser.post(path, kind="social")).status_code == 303
        pulled = await owner.ok("GET", "/scenarios/shop")
        assert pulled["version"] == 2
        lines = pulled["files"]["noise.turns.jsonl"].splitlines()
        assert json.loads(lines[-1])["turn"] == "Lovely weather today."
        assert lines[:-1] == files["noise.turns.jsonl"].splitlines()


async def test_without_a_file_of_ones_own_it_is_a_download_and_for_keys_nothing(house: House) -> None:
    async with house.client() as labs, visiting(house) as browser:
        episode = await labs.create()
        await labs.say(episode, "I will look at it at once. Let us talk about soup.")
        path = f"/episodes/{episode['episode_id']}/turns/1/wrong"
        sent = await browser.post(path, kind="foreign")
        assert sent.headers["content-disposition"] == 'attachment; filename="flat-tyre.turns.jsonl"'
        assert json.loads(sent.text)["kind"] == "foreign"
        key = await house.key("development", scopes=EVERY)
        house.end_development_mode()
        await browser.enter(key)
        assert (await browser.get(path)).status_code == 403
        assert path not in (await browser.get(f"/episodes/{episode['episode_id']}")).text


@pytest.mark.slow
def test_by_hand(browser: Chromium, tmp_path: Path) -> None:
    root = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, root)
    with server_process(tmp_path, keys=(), LABS_SCENARIOS=str(root)) as server:
        visitor = Visitor(browser.new_context().new_page(), server.url)
        visitor.begin()
        visitor.say(ASKED, 1)
        page = visitor.page
        page.get_by_role("link", name="Understood wrongly?").click()
        page.get_by_label("quokka_glass").check()
        page.get_by_role("button", name="Append to the file").click()
        page.wait_for_url("**/console/author/files/bike-shop?*")
        assert json.dumps(ASKED) in page.locator("[data-editor]").input_value()
        assert visitor.complaints == []
