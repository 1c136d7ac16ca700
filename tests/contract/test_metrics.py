"""/metrics: what the operator needs to see, without a word of anybody's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.lab import Plan
from reward_server.auth.scopes import Scope
from reward_server.cli.serve import banner
from reward_server.errors import JudgeFailed
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house

EVALUATION = {**WHERE, "messages": [{"role": "assistant", "content": "How did it happen?"}]}


async def value(labs: Client, name: str, **labels: str) -> float:
    wanted = ",".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
    series = name + (f"{{{wanted}}}" if wanted else "")
    page = (await labs.http.get("/metrics")).text
    found = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def test_episodes_and_turns_are_counted(labs: Client, episode: Json) -> None:
    await labs.say(episode, "How did it happen?")
    log = await labs.log(episode)
    await labs.say(episode, *log[:2])
    await labs.say(episode, "When do you need it back?", terminate=True)
    assert await value(labs, "labs_episodes_started_total") == 1
    assert await value(labs, "labs_turns_total") == 2
    assert await value(labs, "labs_episodes_ended_total", terminal_reason="client_terminated") == 1


async def test_evaluations_are_counted_by_door(labs: Client) -> None:
    sides = {f"response_{side}": {"messages": EVALUATION["messages"]} for side in "ab"}
    await labs.ok("POST", "/evaluate", EVALUATION)
    await labs.ok("POST", "/batch/evaluate", {"items": [{"id": i, **EVALUATION} for i in "xyz"]})
    await labs.ok("POST", "/compare", {**WHERE, **sides})
    counts = {source: await value(labs, "labs_evaluations_total", source=source) for source in ("evaluate", "batch")}
    assert counts == {"evaluate": 1, "batch": 3}
    assert await value(labs, "labs_evaluations_total", source="compare") == 1


async def test_conversations_without_a_reward_are_counted(labs: Client, house: House, episode: Json) -> None:
    house.failure = lambda request: JudgeFailed()
    await labs.turn(episode, "How did it happen?")
    await labs.call("POST", "/evaluate", EVALUATION)
    await labs.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **EVALUATION}]})
    assert await value(labs, "labs_unscored_total", code="judge_failed") == 3


async def test_criteria_that_no_judge_decides_are_counted_by_kind(labs: Client) -> None:
    before = await value(labs, "labs_judge_abstentions_total", kind="judge")
    await labs.ok("POST", "/evaluate", EVALUATION)
    assert await value(labs, "labs_judge_abstentions_total", kind="judge") == before + 1


async def test_what_is_timed_is_what_is_counted(labs: Client, episode: Json) -> None:
    await labs.ok("POST", "/evaluate", EVALUATION)
    await labs.ok("POST", "/evaluate", EVALUATION)
    for route, times in (("/api/v1/evaluate", 2), ("/api/v1/episodes", 1)):
        where = {"method": "POST", "route": route}
        assert await value(labs, "labs_requests_total", status="200", **where) == times
        assert await value(labs, "labs_request_seconds_count", **where) == times
        assert await value(labs, "labs_request_seconds_sum", **where) > 0


async def test_a_lost_database_is_counted(labs: Client, house: House) -> None:
    await house.store.close()
    await labs.call("GET", "/episodes")
    assert await value(labs, "labs_store_errors_total") == 1


# --- who may read it --------------------------------------------------------------------------------


async def test_on_loopback_it_is_open(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with house.client() as nobody:
        assert (await nobody.http.get("/metrics")).status_code == 200


async def test_while_no_key_exists_everybody_is_an_operator_and_the_first_key_ends_that(
    data: Path, matcher: Matcher, library: Library
) -> None:
    async with running_house(data, matcher, library, metrics_access="operator") as house, house.client() as nobody:
        assert (await nobody.http.get("/metrics")).status_code == 200
        services = house.app.state.services
        assert "LABS_METRICS_ACCESS=operator takes effect with the first key" in banner(services.settings, 1, services)
        await house.key()
        house.end_development_mode()
        assert_error(await nobody.http.get("/metrics"), 401, "unauthenticated")
        assert "LABS_METRICS_ACCESS" not in banner(services.settings, 1, services)


async def test_the_first_lines_of_a_server_say_whose_scenarios_it_serves(
    data: Path, matcher: Matcher, library: Library, tmp_path: Path
) -> None:
    async with running_house(data, matcher, library, scenarios=tmp_path) as house:
        services = house.app.state.services
        own = banner(services.settings, 1, services)
    packaged = banner(services.settings.model_copy(update={"scenarios": None}), 1, services)
    assert f"in {tmp_path} (LABS_SCENARIOS), and none of the packaged ones." in own
    assert "LABS_SCENARIOS" not in packaged


@pytest.mark.parametrize(
    ("settings", "needs_key"),
    [
        ({"metrics_access": "operator"}, True),
        ({"host": "0.0.0.0"}, True),
        ({"host": "0.0.0.0", "metrics_access": "open"}, False),
    ],
    ids=["asked for", "elsewhere than loopback", "open on purpose"],
)
async def test_elsewhere_it_takes_an_operators_key(
    data: Path, matcher: Matcher, library: Library, settings: dict[str, str], needs_key: bool
) -> None:
    async with running_house(data, matcher, library) as house:
        agents, operators = await house.key(), await house.key(scopes=[Scope.OPERATE])
    async with running_house(data, matcher, library, **settings) as house:
        answers = {}
        for name, key in (("nobody", None), ("agent", agents), ("operator", operators)):
            async with house.client(key) as client:
                answers[name] = await client.http.get("/metrics")
    assert answers["operator"].status_code == 200
    assert "labs_requests_total" in answers["operator"].text
    if needs_key:
        assert_error(answers["nobody"], 401, "unauthenticated")
        assert_error(answers["agent"], 403, "insufficient_scope")
        assert all("labs_requests" not in answers[name].text for name in ("nobody", "agent"))
    else:
        assert answers["nobody"].status_code == answers["agent"].status_code == 200


async def test_scraping_uses_up_nothing_of_what_calls_may(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library) as house:
        key = await house.key(scopes=[Scope.OPERATE], plan=Plan.CUSTOM, rate_per_minute=2)
    async with running_house(data, matcher, library, metrics_access="operator") as house, house.client(key) as operator:
        for _ in range(5):
            assert (await operator.http.get("/metrics")).status_code == 200
        assert (await operator.call("GET", "/catalog")).headers["x-ratelimit-remaining"] == "1"


async def test_no_label_names_a_scenario_a_lab_or_a_dimension(labs: Client, episode: Json) -> None:
    await labs.say(episode, "How did it happen?")
    await labs.ok("POST", "/evaluate", EVALUATION)
    page = (await labs.http.get("/metrics")).text
    assert not re.search("flat-tyre|bike-shop|D1_|development|acme", page)
