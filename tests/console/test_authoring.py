"""Author in a real browser: the private half, and what is wrong with the files as they are on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

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
