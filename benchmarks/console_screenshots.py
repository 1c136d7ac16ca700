"""Screenshots of the console for the docs: a real server, natural agents that played, a real browser.

    .venv/bin/python -m benchmarks.console_screenshots

writes docs/images/console-*.png. Needs Chromium (Debian: apt-get install chromium) and playwright, which the tests
need as well.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from scenarios.library import load_library, natural_agents
from trainer_client import LabsClient

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1180, 720
SAID = (
    "I am so sorry about the mess on your counter. When exactly does it leak?",
    "Could you turn it over and read me the code on the sticker? And how do you clean it?",
    "Thank you. Did anybody try to mend it? Anyone would have, it changes nothing for me.",
    "I will send you a new one from another batch, free of charge, and you keep the credit.",
)


def main() -> None:
    """Play, visit, take the pictures."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    chromium = os.environ.get("LABS_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("console_screenshots: Chromium is not installed; apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with server() as url, sync_playwright() as playwright:
        play(url)
        arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        take(browser, url)
        browser.close()


@contextmanager
def server() -> Iterator[str]:
    """A server without keys, on a data folder of its own."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "reward_server.cli.main", "serve", "--port", "0", "--data", data]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        try:
            assert process.stdout is not None
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        finally:
            process.terminate()
            process.wait()


def play(url: str) -> None:
    """Have the natural agents of some scenarios play."""
    library = load_library(only=["customer-support", "tutoring/half-a-cup", "negotiation/used-van"])
    with LabsClient(url) as client:
        for name, agents in natural_agents(library).items():
            for script in (agents.poor, agents.ok, agents.excellent):
                episode = client.create_episode(*name.split("/"), seed=7)
                for step in script:
                    calls = {"tool_calls": list(step.tools)} if step.tools else {}
                    turn = client.turn(episode.episode_id, [{"role": "user", "content": step.say, **calls}])
                    if turn.episode_complete:
                        break
                else:
                    client.delete_episode(episode.episode_id)


def take(browser: Browser, url: str) -> None:
    """The pictures."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(f"{url}/console/scenarios/customer-support/leaking-blender")
    page.locator("input[name=seed]").fill("7")
    page.get_by_role("button", name="Start the conversation").click()
    for number, text in enumerate(SAID, start=1):
        page.locator("#content").fill(text)
        page.locator("#content").press("Enter")
        page.wait_for_selector(f"#t{number}")
    shot(page, "play")
    page.goto(f"{url}/console/episodes?scenario=customer-support/leaking-blender&order=highest")
    page.locator("tr[data-item] a").first.click()
    page.wait_for_selector(".understood")
    page.evaluate("document.querySelector('#t2').scrollIntoView()")
    shot(page, "transcript")
    page.goto(f"{url}/console/charts")
    page.get_by_label("Switch between light and dark").click()
    shot(page, "charts")


def shot(page: Page, name: str) -> None:
    """One picture, once plots are drawn."""
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / f"console-{name}.png")
    print(IMAGES / f"console-{name}.png")


if __name__ == "__main__":
    main()
