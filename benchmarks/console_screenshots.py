"""Screenshots of the console for the docs: a real server, natural agents that played, a real browser.

    .venv/bin/python -m benchmarks.console_screenshots

writes docs/images/console-*.png, and says of each how long it took; a page that does not come is named. Needs Chromium
(Debian: apt-get install chromium) and playwright, which the tests need as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as TooLate

from benchmarks.processes import ROOT, labs_server, one_collection, running
from scenarios.library import load_library, natural_agents
from trainer_client import LabsClient

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1180, 720
WAIT_S = 60.0
"""For what a page has to show."""
COLLECTION, SCENARIO = "customer-support", "leaking-blender"
SEEDS = (7, 8)
SAID = (
    "I am so sorry about the mess on your counter. When exactly does it leak?",
    "Could you turn it over and read me the code on the sticker? And how do you clean it?",
    "Thank you. Did anybody try to mend it? Anyone would have, it changes nothing for me.",
    "I will send you a new one from another batch, free of charge, and you keep the credit.",
)


def main() -> None:
    """Play, visit, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=IMAGES, help="folder of the pictures [default: docs/images]")
    images = parser.parse_args().to
    chromium = os.environ.get("LABS_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("console_screenshots: Chromium is not installed; apt-get install chromium")
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        collections = one_collection(Path(folder), COLLECTION)
        server = labs_server(Path(folder), LABS_SCENARIOS=str(collections))
        told("A server starts.")
        with running(server), sync_playwright() as playwright:
            play(server.url, collections)
            arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
            browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
            take(browser, server.url, images)
            browser.close()


def told(line: str) -> None:
    """Say how far it is."""
    print(line, flush=True)


def play(url: str, collections: Path) -> None:
    """Have the natural agents of the scenarios play."""
    agents = natural_agents(load_library(collections), collections)
    with LabsClient(url) as client:
        for seed in SEEDS:
            for name, natural in agents.items():
                told(f"{name}: three agents play, seed {seed}.")
                for script in (natural.poor, natural.ok, natural.excellent):
                    episode = client.create_episode(*name.split("/"), seed=seed)
                    for step in script:
                        calls = {"tool_calls": list(step.tools)} if step.tools else {}
                        turn = client.turn(episode.episode_id, [{"role": "user", "content": step.say, **calls}])
                        if turn.episode_complete:
                            break
                    else:
                        client.delete_episode(episode.episode_id)


def take(browser: Browser, url: str, images: Path) -> None:
    """The pictures."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.set_default_timeout(1000 * WAIT_S)
    with picture(page, images / "console-play.png"):
        page.goto(f"{url}/console/scenarios/{COLLECTION}/{SCENARIO}")
        page.locator("input[name=seed]").fill("7")
        page.get_by_role("button", name="Start the conversation").click()
        for number, text in enumerate(SAID, start=1):
            page.locator("#content").fill(text)
            page.locator("#content").press("Enter")
            page.wait_for_selector(f"#t{number}")
    with picture(page, images / "console-transcript.png"):
        page.goto(f"{url}/console/episodes?scenario={COLLECTION}/{SCENARIO}&order=highest")
        page.locator("tr[data-item] a").first.click()
        page.wait_for_selector(".understood")
        page.evaluate("document.querySelector('#t2').scrollIntoView()")
    with picture(page, images / "console-charts.png"):
        page.goto(f"{url}/console/charts")
        page.get_by_label("Switch between light and dark").click()


@contextmanager
def picture(page: Page, path: Path) -> Iterator[None]:
    """Take a picture of where the block leads, once its plots are drawn; what does not come is named."""
    begun = time.monotonic()
    try:
        yield
        page.locator("[data-plot]:visible:not(:has(canvas))").first.wait_for(state="detached")
        page.wait_for_timeout(300)  # until what was drawn is on the screen
        page.screenshot(path=path)
    except TooLate as error:
        sys.exit(f"console_screenshots: {path.name}: waited in vain on {page.url}: {' '.join(str(error).split())}")
    told(f"{path} ({time.monotonic() - begun:.0f} s)")


if __name__ == "__main__":
    main()
