"""A real server and a real browser. Tests with a browser are slow, and run where Chromium is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from reward_server.auth.scopes import EVERY
from tests.faults.server_process import ServerProcess, server_process

CHROMIUM = os.environ.get("LABS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WAIT_MS = 30_000


@pytest.fixture
def browser() -> Iterator[Browser]:
    """One for each test: while it runs, its event loop counts as running in this thread, and others could not."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def development(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server without keys."""
    with server_process(tmp_path_factory.mktemp("development"), keys=()) as server:
        yield server


@pytest.fixture(scope="session")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with keys for two labs, which may do everything."""
    with server_process(tmp_path_factory.mktemp("keyed"), keys=("acme", "rival"), scopes=EVERY) as server:
        yield server


class Visitor:
    """A browser window; what its console complains of is remembered."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def enter(self, key: str) -> Page:
        self.open("/console/login")
        self.page.get_by_label("API key or token").fill(key)
        self.page.get_by_role("button", name="Enter").click()
        self.page.wait_for_url("**/console")
        return self.page

    def begin(self, *, seed: int = 7, scenario: str = "bike-shop/flat-tyre") -> str:
        """Start a conversation; the id of its episode."""
        self.open(f"/console/scenarios/{scenario}")
        self.page.get_by_label("Seed").fill(str(seed))
        self.page.get_by_label("Temperament").select_option("plainspoken")
        self.page.get_by_role("button", name="Start the conversation").click()
        self.page.wait_for_url("**/console/play/ep_*")
        return self.page.url.rpartition("/")[2]

    def say(self, text: str, turn: int) -> None:
        self.page.get_by_label("Your message").fill(text)
        self.page.get_by_label("Your message").press("Enter")
        self.page.wait_for_selector(f"#t{turn}")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()


@pytest.fixture
def visitor(context: BrowserContext, development: ServerProcess) -> Iterator[Visitor]:
    """Somebody at the server without keys; their browser has nothing to complain of."""
    visitor = Visitor(context.new_page(), development.url)
    yield visitor
    assert visitor.complaints == []
