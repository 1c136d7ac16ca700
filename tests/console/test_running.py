"""Run in a real browser: a job to its results, keys shown once, webhooks, usage, the audit log, health."""

from __future__ import annotations

import json
import re

import pytest

from tests.console.conftest import Visitor
from tests.faults.server_process import WHERE, ServerProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def operator(browser, keyed: ServerProcess):  # type: ignore[no-untyped-def]
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    visitor = Visitor(context.new_page(), keyed.url)
    visitor.enter(keyed.keys["acme"])
    yield visitor
    assert visitor.complaints == []
    context.close()


def test_a_job_to_its_results(operator: Visitor) -> None:
    page = operator.open("/console/jobs")
    page.get_by_text("Start a job").click()
    messages = [{"role": "assistant", "content": "How did it happen?"}]
    lines = [json.dumps({"id": f"item-{number}", **WHERE, "messages": messages}) for number in range(3)]
    page.get_by_label("Items, one JSON object a line").fill("\n".join(lines))
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/console/jobs/job_*")
    page.locator("tr[data-item]").nth(2).wait_for()  # without a reload: the page does so itself
    assert "completed" in page.locator("#job").inner_text()
    page.locator("tr[data-item] a").first.click()
    page.wait_for_url("**/console/evaluations/ev_*")
    assert page.locator("#t1").is_visible()


def test_a_line_that_is_no_json_is_named(operator: Visitor) -> None:
    page = operator.open("/console/jobs")
    page.get_by_text("Start a job").click()
    page.get_by_label("Items, one JSON object a line").fill('{"id": "a"}\nnot json')
    page.get_by_role("button", name="Start", exact=True).click()
    assert "line 2" in page.locator(".problem").inner_text()
    operator.complaints.clear()  # the browser notes the status of the answer


def test_a_key_is_shown_once_works_and_ends(operator: Visitor) -> None:
    page = operator.open("/console/keys")
    page.get_by_text("Make a key").click()
    page.locator("input[name=lab_id]").fill("newcomer")
    page.locator("input[name=name]").fill("<b>trial</b>")
    page.get_by_role("button", name="Make the key").click()
    key = page.locator("#made").inner_text()
    bearer = {"Authorization": f"Bearer {key}"}
    assert page.request.get(f"{operator.url}/api/v1/catalog", headers=bearer).ok
    page = operator.open("/console/keys")
    assert key not in page.content()
    row = page.locator("tr", has_text="<b>trial</b>")
    page.on("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Revoke").click()
    page.locator("tr", has_text="<b>trial</b>").get_by_text("revoked").wait_for()
    assert page.request.get(f"{operator.url}/api/v1/catalog", headers=bearer).status == 401
    page = operator.open("/console/audit")
    assert "key.created" in page.inner_text("main")
    assert "key.revoked" in page.inner_text("main")


def test_a_webhook_with_its_secret_and_deliveries(operator: Visitor) -> None:
    page = operator.open("/console/webhooks")
    page.get_by_label("URL").fill("https://8.8.8.8/hook")
    page.get_by_role("button", name="Add", exact=True).click()
    secret = page.locator("#secret").inner_text()
    assert secret.startswith("whsec_")
    page = operator.open("/console/webhooks")
    assert secret not in page.content()
    page.get_by_role("link", name="https://8.8.8.8/hook").click()
    assert page.get_by_role("heading", name="Deliveries").is_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("There are none.").wait_for()


def test_usage_and_health(operator: Visitor) -> None:
    page = operator.open("/console/usage")
    assert re.search(r"\d{4}-\d\d-\d\d", page.locator("td").first.inner_text())
    page = operator.open("/console/health")
    assert "store: ok" in page.inner_text("main")
    assert page.locator("td", has_text="/console/usage").count() == 1


def test_pages_without_data_are_no_dead_ends(operator: Visitor) -> None:
    for path in ("leaderboard", "agreement", "training", "models", "webhooks", "label"):
        page = operator.open(f"/console/{path}")
        assert page.locator("main h1").count() == 1
