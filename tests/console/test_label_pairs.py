"""Labels of couples of episodes, without a browser: kept as they were shown, once, and gold among them."""

from __future__ import annotations

import re

from reward_server.auth.scopes import EVERY, Scope
from reward_server.console.claims import LASTS
from tests.console.test_admission import Browser, visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House

__all__ = ["data", "empty_database", "house", "library", "matcher"]


def field(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', html)
    assert found is not None, html
    return found[1]


async def played(house: House, key: str, seed: int) -> None:
    """Two finished episodes of one group, one better than the other."""
    async with house.client(key) as labs:
        for said in ("I'm so sorry to hear that. How did it happen?", f"I like soup number {seed}."):
            episode = await labs.create(config={"seed": seed})
            await labs.say(episode, said, terminate=True)


async def begin(browser: Browser, person: str) -> str:
    await browser.post("/label/person", person=person)
    return (await browser.get("/label")).text


async def give(browser: Browser, page: str, choice: str, note: str = "") -> str:
    pair, token = field(page, "pair"), field(page, "token")
    sent = await browser.post("/label", token, pair=pair, choice=choice, note=note)
    assert sent.status_code == 303, sent.text
    return (await browser.get("/label")).text


async def test_a_label_is_kept_as_the_pair_was_shown(house: House) -> None:
    key = await house.key(scopes=EVERY)
    await played(house, key, 1)
    async with visiting(house) as browser, house.client(key) as labs:
        await browser.enter(key)
        page = await begin(browser, "rater-1")
        assert "ep_" not in page.partition("<main")[2]
        assert "earned" not in page
        first = "a" if page.index("How did it happen?") < page.index("I like soup") else "b"
        page = await give(browser, page, first, "It <b>asks</b> first.\r\nAnd kindly.")
        assert "Nothing left to label" in page
        [label] = (await labs.ok("GET", "/preferences?source=label"))["data"]
        better = label[f"response_{label['winner']}"]["messages"]
        assert "How did it happen?" in better[1]["content"]
        assert label["winner"] == first
        assert label["labeller"] == "rater-1"
        assert label["note"] == "It <b>asks</b> first.\nAnd kindly."
        shown = (await browser.get(f"/labels/{label['id']}")).text
        assert "It &lt;b&gt;asks&lt;/b&gt; first." in shown
        export = await labs.http.get("/api/v1/preferences/export?source=label")
        assert "kindly" not in export.text


async def test_a_page_that_is_sent_twice_is_one_label(house: House) -> None:
    key = await house.key(scopes=EVERY)
    await played(house, key, 1)
    async with visiting(house) as browser, house.client(key) as labs:
        await browser.enter(key)
        page = await begin(browser, "rater")
        await give(browser, page, "tie")
        await give(browser, page, "tie")
        assert len((await labs.ok("GET", "/preferences?source=label"))["data"]) == 1


async def test_gold_is_asked_now_and_then(house: House) -> None:
    key = await house.key(scopes=EVERY)
    for seed in range(8):
        await played(house, key, seed)
    async with visiting(house) as gold, visiting(house) as browser:
        await gold.enter(key)
        page = await begin(gold, "gold")
        marked = sorted(re.findall(r"soup number \d", page))
        await give(gold, page, "tie")
        house.clock.advance(LASTS)  # the next pair was shown to them, too, and is theirs for so long
        await browser.enter(key)
        page = await begin(browser, "rater")
        for _ in range(7):
            assert sorted(re.findall(r"soup number \d", page)) != marked
            page = await give(browser, page, "tie")
        assert sorted(re.findall(r"soup number \d", page)) == marked
        page = await give(browser, page, "tie")
        assert "1 of 1 gold pairs right" in page


async def test_a_pair_of_another_lab_or_of_nobody_is_refused(house: House) -> None:
    acme, rival = await house.key("acme", scopes=EVERY), await house.key("rival", scopes=EVERY)
    await played(house, acme, 1)
    async with visiting(house) as browser, visiting(house) as other:
        await browser.enter(acme)
        pair = field(await begin(browser, "rater"), "pair")
        await other.enter(rival)
        await begin(other, "rater")
        assert (await other.post("/label", pair=pair, choice="a")).status_code == 404
        assert (await browser.post("/label", pair="x", choice="a")).status_code == 400
        assert (await browser.post("/label", pair=pair, choice="c")).status_code == 400


async def test_labelling_takes_its_scope(house: House) -> None:
    key = await house.key(scopes={Scope.TRAIN})
    async with visiting(house) as browser:
        await browser.enter(key)
        assert (await browser.get("/label")).status_code == 403
        assert "/console/label" not in (await browser.get("/episodes")).text
