"""Read in a real browser: find, read with the reasons, go on by keyboard, compare, look at charts."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.console.conftest import Visitor
from tests.faults.server_process import WHERE

pytestmark = pytest.mark.slow
HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">",
    "\x1b[31mred\x1b[0m and \u202eback to front\u202c",
    '=HYPERLINK("http://evil","x") {{ 7*7 }} {% raw %}',
    '" onmouseover="document.title=\'owned\'" x="</textarea></details>',
)


def played(url: str, *said: str, seed: int = 7, **config: Any) -> str:
    with httpx2.Client(base_url=f"{url}/api/v1", timeout=60) as http:
        config = {"seed": seed, "persona_slug": "plainspoken", **config}
        episode: str = http.post("/episodes", json={**WHERE, "config": config}).json()["episode_id"]
        for text in said:
            taken = http.post(f"/episodes/{episode}/turns", json={"messages": [{"role": "user", "content": text}]})
            assert taken.status_code == 200, taken.text
        http.delete(f"/episodes/{episode}")
    return episode


def test_find_read_with_reasons_and_go_on(visitor: Visitor) -> None:
    older = played(visitor.url, "Where did marmalade come into it?", seed=1)
    newer = played(visitor.url, "I'm so sorry to hear that. How did it happen?", "I like marmalade.", seed=2)
    page = visitor.open("/console/episodes?text=marmalade")
    assert page.locator("tr[data-item]").count() == 2
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{newer}")
    page.locator("#t1 .understood").wait_for()
    assert page.locator("#t1 mark").count() >= 1
    assert "told" in page.locator("#t1 .understood").inner_text()
    assert page.locator(".criterion").count() >= 5
    page.keyboard.press("j")
    page.wait_for_url(f"**/{older}")
    page.keyboard.press("k")
    page.wait_for_url(f"**/{newer}")


def test_compare_two(visitor: Visitor) -> None:
    for seed in (3, 4):
        played(visitor.url, "How did the pelican happen?", *["When do you need it back?"] * (seed - 3), seed=seed)
    page = visitor.open("/console/episodes?text=pelican")
    for box in page.locator("input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Compare two").click()
    page.wait_for_url("**/console/compare?**")
    assert page.locator(".half").count() == 2
    assert page.locator("canvas").count() == 1
    a, b = (page.locator(".bars tr").nth(1).locator("td b").nth(each).inner_text() for each in (0, 1))
    assert a == page.locator(".half").nth(0).locator(".earned b").last.inner_text()
    assert b == page.locator(".half").nth(1).locator(".earned b").last.inner_text()


def test_charts_lead_to_the_episodes(visitor: Visitor) -> None:
    played(visitor.url, "How did it happen?", seed=5)
    page = visitor.open("/console/charts?scenario=bike-shop/flat-tyre")
    page.locator("canvas").nth(2).wait_for()
    page.get_by_role("link", name="read them").click()
    page.wait_for_url("**/console/episodes?scenario=bike-shop%2Fflat-tyre")
    assert page.locator("tr[data-item]").count() >= 1


def test_a_hostile_transcript_is_text(visitor: Visitor) -> None:
    long = "walrus " + "y" * 9_990
    episode = played(visitor.url, *HOSTILE, long, metadata={"</dd><script>": "document.title='owned'"})
    for path in (
        "/console/episodes?text=script",
        f"/console/episodes/{episode}",
        f"/console/compare?id={episode}&id={episode}",
        "/console/charts",
    ):
        page = visitor.open(path)
        page.wait_for_load_state("networkidle")
        assert "owned" not in page.title()
        assert page.locator("main script, main img, [onerror], [onmouseover]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    visitor.open(f"/console/episodes/{episode}").locator(".understood").first.wait_for()
    assert HOSTILE[0] in visitor.page.locator("#t1 p").first.inner_text()
    assert "⟨U+202E⟩" in visitor.page.locator("#t2 p").first.inner_text()
    assert "␛[31m" in visitor.page.locator("#t2 p").first.inner_text()
    assert HOSTILE[2] in visitor.page.locator("#t3 p").first.inner_text()


def test_evaluations_are_read_as_well(visitor: Visitor) -> None:
    messages = [{"role": "user", "content": "A flat tyre."}, {"role": "assistant", "content": "How did it happen?"}]
    with httpx2.Client(base_url=f"{visitor.url}/api/v1", timeout=60) as http:
        scored = http.post("/evaluate", json={**WHERE, "messages": messages}).json()
    page = visitor.open("/console/evaluations")
    page.locator(f"a[href$={scored['evaluation_id']}]").click()
    page.locator("#t1").wait_for()
    assert page.locator(".reward .value").inner_text() == f"{scored['reward']:.3f}"


def test_print_shows_the_transcript_alone(visitor: Visitor) -> None:
    episode = played(visitor.url, "How did it happen?")
    page = visitor.open(f"/console/episodes/{episode}")
    page.emulate_media(media="print")
    assert page.locator(".talk").is_visible()
    assert not page.locator(".side").is_visible()
    assert not page.locator(".top").is_visible()
