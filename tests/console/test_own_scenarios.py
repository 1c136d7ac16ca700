"""Author, in process: own collections in the editor, mistakes at their line, versions; files on disk; who may."""

from __future__ import annotations

import html
import os
import re
import shutil
from pathlib import Path

import httpx2

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import EVERY, USUAL
from scenarios.library import Library, load_library
from scenarios.lint import COLLECTIONS
from tests.console.test_admission import Browser, visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House, running_house
from tests.contract.test_own_scenarios import files

__all__ = ["data", "empty_database", "house", "library", "matcher"]
HOSTILE = "</textarea><script>alert(1)</script>"
SMALL = Path(__file__).parents[1] / "data" / "collections"


def text_of(page: str) -> str:
    found = re.search(r"<textarea[^>]*data-editor[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


async def edit(browser: Browser, path: str, text: str, file: str, base: object, **more: str) -> httpx2.Response:
    return await browser.post(path, text=text, file=file, base=str(base), **more)


async def test_a_file_is_edited_into_a_new_version(house: House) -> None:
    async with house.client(await house.key("acme", scopes=EVERY)) as owner, visiting(house) as browser:
        await browser.enter(owner.http.headers["authorization"].removeprefix("Bearer "))
        await owner.ok("POST", "/scenarios", {"collection": "repairs", "files": files()})
        assert "repairs" in (await browser.get("/author")).text
        page = await browser.get("/author/own/repairs?file=answers.yaml")
        assert text_of(page.text) == files()["answers.yaml"]
        own = "/author/own/repairs"

        # A mistake is told at its line, the text is kept on the page, and nothing is saved.
        lines = files()["answers.yaml"].splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("situation:"))
        broken = "\n".join([*lines[:at], f"situations: {HOSTILE!r}", *lines[at:]])
        refused = await edit(browser, own, broken, "answers.yaml", 1)
        assert refused.status_code == 400
        assert f'data-line="{at + 1}"' in refused.text
        assert text_of(refused.text) == broken
        assert HOSTILE not in refused.text
        checked = await edit(browser, f"{own}/findings", broken, "answers.yaml", 1)
        assert f'data-line="{at + 1}"' in checked.text
        assert (await owner.ok("GET", "/scenarios/repairs"))["version"] == 1

        changed = files()["answers.yaml"].replace("\n", "\r\n") + "# by hand\r\n"
        saved = await edit(browser, own, changed, "answers.yaml", 1)
        assert saved.status_code == 303
        assert "job=job_" in saved.headers["location"]
        pulled = await owner.ok("GET", "/scenarios/repairs")
        assert pulled["version"] == 2
        assert pulled["files"]["answers.yaml"] == files()["answers.yaml"] + "# by hand\n"

        late = await edit(browser, own, "x: 1", "answers.yaml", 1)
        assert late.status_code == 409
        assert "Version 2 was saved meanwhile" in late.text
        assert text_of(late.text) == "x: 1"


async def test_findings_and_progress_of_the_check(house: House) -> None:
    async with house.client(await house.key("acme", scopes=EVERY)) as owner, visiting(house) as browser:
        await browser.enter(owner.http.headers["authorization"].removeprefix("Bearer "))
        made = await owner.ok("POST", "/scenarios", {"collection": "repairs", "files": files()})
        path = f"/author/own/repairs?job={made['job_id']}"
        page = (await browser.get(path)).text
        assert "<progress" in page
        assert 'hx-trigger="every 2s"' in page
        async with house.store.transaction() as unit:
            row = (await unit.own_collections.of("acme", "repairs"))[0]
            await unit.own_collections.settle(row, type(row.status).FAILED, ["answers: <b>its reward</b> is not right"])
        part = (await browser.get(path, **{"HX-Request": "true"})).text
        assert "&lt;b&gt;its reward&lt;/b&gt; is not right" in part
        assert "every 2s" not in part
        await browser.post("/author/own/repairs/delete", await browser.token(path))
        assert (await owner.ok("GET", "/scenarios"))["data"] == []


async def test_a_scenario_begins_from_the_example(house: House) -> None:
    async with visiting(house) as browser:
        token = await browser.token("/author")
        begun = await browser.post("/author", token, collection="my-shop", slug="late-parcel")
        assert begun.status_code == 303
        page = (await browser.get("/author/own/my-shop?file=late-parcel.yaml")).text
        assert "late-parcel.rubric.yaml" in page
        assert "/tmp" not in page
        again = await browser.post("/author", token, collection="my-shop", slug="late-parcel")
        assert again.status_code == 400
        assert "is there already" in again.text
        rubric = await browser.post("/author", token, collection="my-shop", slug="tone", rubric="1")
        assert rubric.status_code == 303
        assert "late-parcel.yaml" in (await browser.get("/author/own/my-shop")).text


async def test_it_takes_the_scope_and_the_lab(house: House) -> None:
    acme, rival = await house.key("acme", scopes=EVERY), await house.key("rival", scopes=EVERY)
    usual = await house.key("acme", scopes=USUAL)
    async with house.client(acme) as owner, visiting(house) as browser:
        await owner.ok("POST", "/scenarios", {"collection": "repairs", "files": files()})
        for key, status in ((usual, 403), (rival, 404)):
            await browser.enter(key)
            token = await browser.token("")
            assert (await browser.get("/author/own/repairs")).status_code == status
            for path in ("/author/own/repairs", "/author/own/repairs/findings", "/author/own/repairs/delete"):
                assert (await browser.post(path, token, text="x", file="answers.yaml")).status_code == status
        assert "/console/author" not in (await _page_of(browser, usual)).text
        await browser.enter(acme)
        assert (await browser.get("/author/files/bike-shop")).status_code == 403
        assert (await browser.get("/scenarios/bike-shop/flat-tyre/private")).status_code == 403


async def _page_of(browser: Browser, key: str) -> httpx2.Response:
    await browser.enter(key)
    return await browser.get("")


async def test_files_on_disk(data: Path, matcher: Matcher, tmp_path: Path) -> None:
    scenarios = tmp_path / "collections"
    shutil.copytree(SMALL, scenarios)
    file = scenarios / "bike-shop" / "flat-tyre.yaml"
    before, small = file.read_text(), load_library(scenarios)
    (scenarios / "bike-shop" / "linked.yaml").symlink_to(file)
    async with running_house(data, matcher, small, scenarios=scenarios) as house, visiting(house) as browser:
        assert "/console/author/files/bike-shop" in (await browser.get("/author")).text
        path = "/author/files/bike-shop"
        page = (await browser.get(f"{path}?file=flat-tyre.yaml")).text
        base = _base(page)
        assert text_of(page) == before

        broken = before.replace("max_turns:", "max_turn:", 1)
        refused = await edit(browser, path, broken, "flat-tyre.yaml", base)
        assert refused.status_code == 400
        assert "data-line" in refused.text
        assert file.read_text() == before
        saved = await edit(browser, path, before + "# mine\n", "flat-tyre.yaml", base)
        assert saved.status_code == 303
        assert file.read_text() == before + "# mine\n"
        late = await edit(browser, path, before + "# yours\n", "flat-tyre.yaml", base)
        assert late.status_code == 409
        assert file.read_text() == before + "# mine\n"
        anyway = await edit(browser, path, broken, "flat-tyre.yaml", _base(late.text), anyway="1")
        assert anyway.status_code == 303
        assert file.read_text() == broken

        # No new files, none elsewhere, none that a link leads to.
        for name in ("new.yaml", "../front-desk/lost-key.yaml", "linked.yaml", "collection.py"):
            made = await edit(browser, path, "a: 1\n", name, _base(page), anyway="1")
            assert made.status_code in {400, 404, 409}, name
        assert file.read_text() == broken
        assert not (scenarios / "bike-shop" / "new.yaml").exists()
        assert (await browser.get("/author/files/%2e%2e%2fdata")).status_code == 404
        assert sorted(os.listdir(scenarios / "bike-shop")) == ["collection.yaml", "flat-tyre.yaml", "linked.yaml"]


def _base(page: str) -> str:
    found = re.search(r'name="base" value="(\w+)"', page)
    assert found is not None
    return found[1]


async def test_the_packaged_files_are_not_written(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, scenarios=COLLECTIONS) as house, visiting(house) as browser:
        assert "are not edited here" in (await browser.get("/author")).text
        assert (await browser.get("/author/files/tutoring")).status_code == 403
