"""Label in a real browser: two people by keyboard, blind, without meeting the same pair; a restart between; export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page

from reward_server.auth.scopes import EVERY
from tests.console.conftest import Visitor
from tests.faults.server_process import WHERE, server_process

pytestmark = pytest.mark.slow
TALKS = ("How did it happen?", "I like soup.")


def compared(url: str, key: str, *rounds: int) -> None:
    """Store comparisons whose better side is A."""
    with httpx2.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        for number in rounds:
            sides: Any = [
                {"messages": [{"role": "user", "content": f"Hello, {number}."}, {"role": "assistant", "content": text}]}
                for text in TALKS
            ]
            body = {**WHERE, "response_a": sides[0], "response_b": sides[1]}
            assert http.post("/compare", json=body).status_code == 200


def opened(browser: Browser, url: str, key: str, person: str) -> Visitor:
    visitor = Visitor(browser.new_context().new_page(), url)
    visitor.enter(key)
    visitor.open("/console/label")
    visitor.page.get_by_label("Label as").fill(person)
    visitor.page.get_by_role("button", name="Begin").click()
    visitor.page.wait_for_selector(".half")
    return visitor


def the_better(page: Page) -> str:
    return "a" if TALKS[0] in page.locator(".half").nth(0).inner_text() else "b"


def hello(page: Page) -> str:
    return page.locator(".half .persona p").first.inner_text()


def test_two_people_a_restart_and_the_export(browser: Browser, tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",), scopes=EVERY) as server:
        key = server.keys["acme"]
        compared(server.url, key, 1, 2, 3)
        one = opened(browser, server.url, key, "rater-1")
        two = opened(browser, server.url, key, "rater-2")
        assert hello(one.page) != hello(two.page)
        assert one.page.locator(".earned").count() == 0
        first = hello(one.page)
        one.page.get_by_label("Note").fill("a b t: words, no keys")
        one.page.keyboard.press("Escape")
        one.page.keyboard.press(the_better(one.page))
        one.page.wait_for_function("text => !document.body.innerText.includes(text)", arg=first)
        assert "1 labelled by rater-1" in one.page.inner_text("main")
        chosen = the_better(two.page)
        kept = hello(two.page)
    with server_process(tmp_path, keys=()) as server:
        # What the page that was open has, sent to the server that runs now.
        again = browser.new_context()
        again.add_cookies(
            [
                {"name": each["name"], "value": each["value"], "url": f"{server.url}/console"}
                for each in two.page.context.cookies()
            ]
        )
        form = {name: two.page.locator(f".choose [name={name}]").input_value() for name in ("token", "pair")}
        sent = again.request.post(f"{server.url}/console/label", form={**form, "choice": chosen})
        assert sent.ok
        assert "1 labelled by rater-2" in sent.text()
        assert kept not in sent.text()
        exported = again.request.get(f"{server.url}/console/label/export?source=label&format=trl").text().splitlines()
        lines = [json.loads(line) for line in exported]
        assert len(lines) == 2
        assert {line["chosen"][0]["content"] for line in lines} == {TALKS[0]}
        assert {line["provenance"]["labeller"] for line in lines} == {"rater-1", "rater-2"}
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(headers=headers) as http:
            by_api = http.get(f"{server.url}/api/v1/preferences/export?source=label&format=trl").text.splitlines()
        assert by_api == exported
        assert "words, no keys" in again.request.get(f"{server.url}/api/v1/preferences", headers=headers).text()


def test_skip_and_nothing_left(browser: Browser, tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",), scopes=EVERY) as server:
        key = server.keys["acme"]
        compared(server.url, key, 1)
        visitor = opened(browser, server.url, key, "rater")
        visitor.page.get_by_text("Export, or label under another name").click()
        visitor.page.get_by_role("heading", name="Export").wait_for()
        visitor.page.keyboard.press("s")
        visitor.page.get_by_role("heading", name="Nothing left to label").wait_for()
        visitor.page.get_by_role("button", name="Label under another name").click()
        visitor.page.get_by_label("Label as").fill("other")
        visitor.page.get_by_role("button", name="Begin").click()
        visitor.page.wait_for_selector(".half")
        assert visitor.complaints == []
