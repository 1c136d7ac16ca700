"""Author in a real browser: the private half, the files on disk, and a scenario from the example to its first talk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reward_server.auth.scopes import EVERY
from tests.console.conftest import Visitor
from tests.faults.server_process import COLLECTIONS, server_process

pytestmark = pytest.mark.slow


def test_the_private_half_and_its_findings(browser: Browser, tmp_path: Path) -> None:
    scenarios = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, scenarios)
    with server_process(tmp_path, keys=(), LABS_SCENARIOS=str(scenarios)) as server:
        visitor = Visitor(browser.new_context().new_page(), server.url)
        page = visitor.open("/console/scenarios/bike-shop/flat-tyre")
        page.get_by_role("link", name="The private half").click()
        assert page.get_by_text("quokka_glass", exact=True).first.is_visible()
        assert page.get_by_text("I rode over broken glass behind the station.").first.is_visible()
        page.get_by_role("button", name="Check the files").click()
        page.locator("#findings .good-news").wait_for()
        file = scenarios / "bike-shop" / "flat-tyre.yaml"
        lines = file.read_text().splitlines()
        at = next(number for number, line in enumerate(lines) if "max_turns" in line)
        lines[at] = "  max_turns: many"
        file.write_text("\n".join(lines))
        page.get_by_role("button", name="Check the files").click()
        page.locator("#findings .problem").wait_for()
        assert f"flat-tyre.yaml:{at + 1}" in page.locator("#findings").inner_text()
        assert visitor.complaints == []


def test_from_the_example_to_a_version_that_passed(browser: Browser, tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",), scopes=EVERY) as server:
        visitor = Visitor(browser.new_context().new_page(), server.url)
        visitor.enter(server.keys["acme"])
        page = visitor.open("/console/author")
        page.get_by_label("Collection").fill("tone")
        page.get_by_label("Scenario").fill("polite")
        page.get_by_label("a rubric alone").check()
        page.get_by_role("button", name="Begin with the commented example").click()
        page.wait_for_url("**/console/author/own/tone?*")
        editor = page.locator("[data-editor]")
        text = editor.input_value()
        assert page.locator(".gutter span").count() == text.count("\n") + 1
        page.locator("#check .good-news").wait_for(timeout=120_000)

        lines = text.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("situation:"))
        editor.fill(text.replace("situation:", "situations:", 1))
        told = page.locator(f"#findings [data-line='{at + 1}']")
        told.wait_for()
        assert str(at + 1) in page.locator(".gutter .bad").all_inner_texts()
        told.click()
        chosen = editor.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
        assert chosen.startswith("situations:")
        page.get_by_role("button", name="Save", exact=True).click()
        page.locator("#findings .problem").wait_for()
        visitor.complaints.clear()  # the browser notes the status of the answer
        page.locator("[data-editor]").fill(text + "# by hand\n")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text("version 2").wait_for()
        page.locator("#check .good-news").wait_for(timeout=120_000)
        assert page.locator("[data-editor]").input_value().endswith("# by hand\n")
        page.get_by_role("link", name="its private half").click()
        page.get_by_role("heading", name="Rubric").wait_for()
        assert visitor.complaints == []
