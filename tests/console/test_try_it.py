"""The newcomer's first minute, in a real browser: pick a scenario, talk, call a tool, end, read the receipt."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Route

from tests.console.conftest import Visitor

pytestmark = pytest.mark.slow


def test_a_conversation_from_the_card_to_the_receipt(visitor: Visitor) -> None:
    page = visitor.open("/console")
    page.get_by_label("Find a scenario").fill("flat tyre")
    assert page.locator(".scenario:visible").count() == 1
    page.get_by_role("heading", name="The flat tyre").click()
    assert page.get_by_text("You work at the counter of a bike shop.").is_visible()
    assert page.get_by_text("new_tube").is_visible()
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Start the conversation").click()
    page.wait_for_selector("#t0")
    assert page.locator(".reward .value").inner_text() == "–"

    visitor.say("I'm so sorry to hear that. How did it happen?", 1)
    assert page.locator("#t1 .earned b").inner_text() == page.locator(".reward .value").inner_text()
    assert page.locator(".reward canvas").count() == 1
    assert page.locator(".bars meter").count() >= 1

    page.get_by_text("Call a tool with it").click()
    page.locator("select[name=tool]").select_option("job_sheet")
    page.get_by_label("summary").fill("Glass in the back wheel.")
    page.get_by_label("urgent").check()
    visitor.say("I am writing that down.", 2)
    call = page.locator("#t2 .call").inner_text()
    assert "job_sheet" in call
    assert "Glass in the back wheel." in call
    assert "true" in call

    end = page.get_by_role("button", name="End the conversation")
    page.once("dialog", lambda dialog: dialog.dismiss())
    end.click()
    page.reload()
    assert end.is_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    end.click()
    receipt = page.locator(".receipt")
    receipt.wait_for()
    assert "client terminated" in receipt.inner_text()
    assert receipt.locator(".total b").inner_text() == page.locator("#t2 .earned b").inner_text()


def test_what_does_not_fit_a_tool_is_said_at_the_call(visitor: Visitor) -> None:
    visitor.begin()
    page = visitor.page
    page.get_by_text("Call a tool with it").click()
    page.locator("select[name=tool]").select_option("job_sheet")
    page.get_by_label("summary").fill("x")
    visitor.say("A moment.", 1)
    assert page.locator("#t1 .call.refused b").inner_text()


def test_what_a_tool_needs_is_asked_for_before_a_turn_is_spent(visitor: Visitor) -> None:
    visitor.begin()
    page = visitor.page
    page.get_by_text("Call a tool with it").click()
    page.locator("select[name=tool]").select_option("job_sheet")
    page.get_by_text("Call a tool with it").click()  # shut again: what is missing has to be seen
    page.get_by_label("Your message").fill("A moment.")
    page.get_by_role("button", name="Send").click()
    needed = page.locator("[name='job_sheet.summary']")
    assert needed.evaluate("each => document.activeElement === each && each.validationMessage !== ''")
    needed.fill("  ")
    page.get_by_role("button", name="Send").click()
    problem = page.locator("#flash .problem")
    problem.wait_for()
    assert "summary The tool needs this." in problem.inner_text()
    visitor.complaints.clear()  # the browser notes the status of the answer
    needed.fill("Glass in the back wheel.")
    visitor.say("A moment.", 1)
    assert page.locator("#t1 .call:not(.refused)").count() == 1


def test_a_turn_that_takes_long_says_what_is_waited_for(visitor: Visitor) -> None:
    visitor.begin()
    page = visitor.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/turns", hold)
    for number, told in enumerate(("The persona learns its case first…", "The persona reads your turn…"), start=1):
        assert page.get_by_text(told).is_hidden()
        page.get_by_label("Your message").fill("How did it happen?")
        page.get_by_label("Your message").press("Enter")
        page.get_by_text(told).wait_for()
        assert not page.get_by_label("Your message").is_editable(), "what is typed now would be lost"
        held.pop().continue_()
        page.wait_for_selector(f"#t{number}")
        assert page.get_by_label("Your message").is_editable()


def test_code_to_copy_scores_the_same_conversation(visitor: Visitor) -> None:
    episode = visitor.begin()
    visitor.say("How did it happen?", 1)
    page = visitor.page
    reward = page.locator(".reward .value").inner_text()
    page.get_by_text("Score this conversation from code").click()
    code = page.locator("#code-curl").inner_text()
    body = json.loads(code[code.index("'{") + 1 : code.rindex("}'") + 1].replace("'\"'\"'", "'"))
    scored = page.request.post(f"{visitor.url}/api/v1/evaluate", data=body).json()
    assert f"{scored['reward']:.3f}" == reward
    page.get_by_role("tab", name="OpenAI").click()
    assert "judge:bike-shop/flat-tyre" in page.locator("#code-openai").inner_text()
    assert episode not in code


def test_a_message_that_is_refused_says_why_and_keeps_what_was_written(visitor: Visitor) -> None:
    visitor.begin()
    page = visitor.page
    page.get_by_label("Your message").evaluate("element => element.removeAttribute('maxlength')")
    page.get_by_label("Your message").fill("a" * 10_001)
    page.get_by_role("button", name="Send").click()
    page.locator("#flash .problem").wait_for()
    assert len(page.get_by_label("Your message").input_value()) == 10_001
    visitor.complaints.clear()  # the browser notes the status of the answer


def test_theme_and_keys(visitor: Visitor) -> None:
    page = visitor.open("/console")
    page.keyboard.press("?")
    assert page.get_by_role("heading", name="Keyboard").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    scenarios = page.locator(".scenario:visible").count()
    page.keyboard.type("flat tyre")
    assert page.locator(".scenario:visible").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".scenario:visible").count() == scenarios
    assert page.get_by_label("Find a scenario").input_value() == ""
    page.get_by_label("Switch between light and dark").click()
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/scenarios/**")


def test_phone_width(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 780})
    visitor.open("/console/scenarios/bike-shop/flat-tyre")
    assert visitor.page.evaluate("scrollY") == 0
    visitor.begin()
    visitor.say("How did it happen?", 1)
    page = visitor.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Menu", exact=True).click()
    assert page.get_by_role("link", name="Episodes", exact=True).is_visible()
