"""A criterion is labelled beside its verdict: by a form without scripts, and by hand in a browser."""

from __future__ import annotations

import re

import pytest

from reward_server.auth.scopes import EVERY, Scope
from tests.console.conftest import Visitor
from tests.console.test_admission import visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House

__all__ = ["data", "empty_database", "house", "library", "matcher"]
SAID = "I am so sorry to hear that. How did it happen?"


async def test_a_form_keeps_a_label_and_shows_it(house: House) -> None:
    full = await house.key("acme", scopes=EVERY, full_scores=True)
    async with house.client(full) as labs, visiting(house) as browser:
        episode = await labs.create()
        await labs.say(episode, SAID)
        await browser.enter(full)
        page = f"/episodes/{episode['episode_id']}"
        reasons = (await browser.get(page, **{"HX-Request": "true"})).text
        names = re.findall(r'name="criterion" value="([^"]+)"', reasons)
        assert len(set(names)) == len(names) > 3
        form = {"conversation": episode["episode_id"], "criterion": names[0], "met": "true", "labeller": "<b>rater</b>"}
        sent = await browser.post("/criteria", quote="How did it happen?", **form)
        assert sent.headers["location"] == f"/console{page}"
        refused = await browser.post("/criteria", quote="Nobody said this.", **form)
        assert refused.status_code == 400
        assert "not in the conversation" in refused.text
        again = (await browser.get(page, **{"HX-Request": "true"})).text
        assert again.count("Label (1)") == 1
        assert "&lt;b&gt;rater&lt;/b&gt;" in again
        assert "<b>rater" not in again
        [kept] = (await labs.ok("GET", "/criterion-labels"))["data"]
        assert (kept["criterion"], kept["met"], kept["quote"]) == (names[0], True, "How did it happen?")


async def test_without_the_scope_or_full_scores_there_is_no_form(house: House) -> None:
    full = await house.key("acme", scopes=EVERY - {Scope.LABEL}, full_scores=True)
    plain = await house.key("acme", scopes=EVERY)
    async with house.client(full) as labs, visiting(house) as browser:
        episode = await labs.create()
        await labs.say(episode, SAID)
        for key in (full, plain):
            await browser.enter(key)
            shown = (await browser.get(f"/episodes/{episode['episode_id']}", **{"HX-Request": "true"})).text
            assert 'action="/console/criteria"' not in shown
            form = {"conversation": episode["episode_id"], "criterion": "D1.1", "met": "true"}
            assert (await browser.post("/criteria", **form)).status_code == 403


@pytest.mark.slow
def test_by_hand(visitor: Visitor) -> None:
    episode = visitor.begin()
    visitor.say(SAID, 1)
    page = visitor.open(f"/console/episodes/{episode}")
    first = page.locator(".criterion").first
    first.locator("summary").click()
    first.get_by_label("Quote that shows it").fill("How did it happen?")
    first.get_by_label("Your name").fill("ann")
    first.get_by_role("button", name="Met", exact=True).click()
    first.locator("summary", has_text="Label (1)").wait_for()
    assert "ann" in first.inner_text()
    assert page.url.endswith(episode)
    # The name is remembered, the next label is the newest.
    page.reload()
    second = page.locator(".criterion").nth(1)
    second.locator("summary").click()
    assert second.get_by_label("Your name").input_value() == "ann"
