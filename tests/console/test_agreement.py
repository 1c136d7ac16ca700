"""Judges and people: the reliability curve and the disagreements, the surest first. In process, and in a browser."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser as Chromium

from reward_server.auth.scopes import EVERY
from reward_server.preferences.agreement import by_margin
from reward_server.store.records import PreferenceRow
from tests.console.conftest import Visitor
from tests.console.test_admission import visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House
from tests.faults.server_process import WHERE, server_process

__all__ = ["data", "empty_database", "house", "library", "matcher"]
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "<i>Hi</i>"}]
LABEL = PreferenceRow(
    preference_id="pref_0",
    lab_id="development",
    comparison_id=None,
    collection="bike-shop",
    scenario="flat-tyre",
    winner="a",
    margin=None,
    labeller="rater",
    reward_a=0.0,
    reward_b=0.0,
    scoring_version="v",
    agent_role="assistant",
    messages_a=MESSAGES,
    messages_b=MESSAGES,
    created_at=datetime(2026, 3, 1, tzinfo=UTC),
)


def labels() -> list[PreferenceRow]:
    """Twenty close pairs, of which people agree with half, and twenty apart, of which they agree with 18."""
    close = [replace(LABEL, reward_a=0.51, reward_b=0.5, winner="a" if n % 2 else "b") for n in range(20)]
    apart = [replace(LABEL, reward_a=0.2, reward_b=0.9, winner="b" if n > 1 else "a") for n in range(20)]
    return [replace(each, preference_id=f"pref_{n:04}") for n, each in enumerate(close + apart)]


def test_people_agree_more_where_rewards_are_farther_apart() -> None:
    near, far = by_margin(labels())
    assert (near.n, near.observed, round(near.predicted, 4)) == (20, 0.5, 0.01)
    assert (far.n, far.observed, round(far.predicted, 4)) == (20, 0.9, 0.7)


def test_ties_of_people_other_versions_and_few_labels_make_no_curve() -> None:
    ties = [replace(each, winner="tie") for each in labels()]
    older = [replace(each, scoring_version="older") for each in labels()]
    assert by_margin([*labels()[:5], *ties, *older]) == by_margin(labels()[:5])
    assert by_margin(labels()[:4]) == ()


async def test_the_page_draws_it_and_lists_the_surest_first(house: House) -> None:
    async with house.store.transaction() as unit:
        for each in labels():
            await unit.preferences.add(each)
    async with visiting(house) as browser:
        page = (await browser.get("/agreement")).text
        plot = re.search(r'data-plot="([^"]+)"', page)
        assert plot is not None
        drawn = json.loads(html.unescape(plot[1]))
        assert drawn["x"] == [0.01, 0.7]
        assert drawn["lines"][0]["values"] == [0.5, 0.9]
        listed = re.findall(r"/console/labels/(pref_\d+)", page)
        assert len(listed) == 12
        assert set(listed[:2]) == {"pref_0020", "pref_0021"}
        assert "&lt;i&gt;Hi&lt;/i&gt;" in (await browser.get(f"/labels/{listed[0]}")).text


@pytest.mark.slow
def test_the_curve_in_a_browser(browser: Chromium, tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",), scopes=EVERY) as server:
        with httpx2.Client(
            base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {server.keys['acme']}"}, timeout=60
        ) as http:
            talks = ("How did it happen?", "I like soup.")
            sides = [
                {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": text}]}
                for text in talks
            ]
            for number in range(6):
                body = {**WHERE, "response_a": sides[0], "response_b": sides[1]}
                compared = http.post("/compare", json=body).json()
                label = {"comparison_id": compared["comparison_id"], "winner": "a" if number else "b"}
                assert http.post("/preferences", json=label).status_code == 200
        visitor = Visitor(browser.new_context().new_page(), server.url)
        visitor.enter(server.keys["acme"])
        page = visitor.open("/console/agreement")
        page.locator(".plot canvas").wait_for()
        page.get_by_role("link", name="flat-tyre").first.click()
        page.get_by_role("heading", name="B is better").wait_for()
        assert visitor.complaints == []
