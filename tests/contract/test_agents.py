"""/agents, jobs of type `evaluate_agent` and /leaderboard: agents are real OpenAI-compatible servers on loopback."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_provider import Asked, Fail, Mode, Say, ScriptedProvider
from personas.reading.matcher import Matcher
from reward_server.auth.scopes import Scope
from scenarios.library import Library
from tests.contract.house import COLLECTION, SCENARIO, WHERE, Client, House, Json, assert_error, running_house
from tests.contract.test_jobs import over, results

LINES = ["Good morning. How did it happen?", "I am sorry to hear that. Where did you ride?", "Shall I fix it today?"]
CANARY = "sk-canary-of-an-agent"


def friendly(asked: Asked) -> str:
    said = sum(message["role"] == "assistant" for message in asked.body["messages"])
    return LINES[said % len(LINES)]


@pytest.fixture
async def inner(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    """A server whose operator allows agents in his own network."""
    async with running_house(data, matcher, library, private_addresses=True) as running:
        yield running


@pytest.fixture
async def lab(inner: House) -> AsyncIterator[Client]:
    async with inner.client() as client:
        yield client


@contextmanager
def policy(script: Any) -> Iterator[ScriptedProvider]:
    with ScriptedProvider(script) as server:
        yield server


async def add(lab: Client, url: str, **fields: Any) -> Json:
    body = {"name": "Anna", "base_url": f"{url}/v1", "model": "anna-8b", **fields}
    return await lab.ok("POST", "/agents", body)


async def evaluated(lab: Client, agent: Json, *, seeds: list[int] | None = None, **fields: Any) -> Json:
    options = {"agent_id": agent["agent_id"], **({} if seeds is None else {"seeds": seeds})}
    return await over(lab, await lab.ok("POST", "/jobs", {"type": "evaluate_agent", "agent": options, **fields}))


# --- agents ---------------------------------------------------------------------------------------


async def test_an_agent_is_added_listed_read_and_deleted(inner: House, lab: Client) -> None:
    first = await add(lab, "http://127.0.0.1:9009", temperature=0.5)
    inner.clock.advance(timedelta(seconds=1))
    second = await add(lab, "http://127.0.0.1:9009", name="Berta", api_key=CANARY)
    assert first["agent_id"].startswith("agent_")
    assert (first["kind"], first["temperature"], first["has_api_key"]) == ("endpoint", 0.5, False)
    assert second["has_api_key"]
    listed = (await lab.ok("GET", "/agents"))["data"]
    assert [each["name"] for each in listed] == ["Berta", "Anna"]
    page = await lab.ok("GET", "/agents?limit=1")
    rest = await lab.ok("GET", f"/agents?limit=1&cursor={page['next_cursor']}")
    assert [each["name"] for each in page["data"] + rest["data"]] == ["Berta", "Anna"]
    assert (await lab.ok("GET", f"/agents/{first['agent_id']}"))["name"] == "Anna"
    changed = await lab.ok("PATCH", f"/agents/{first['agent_id']}", {"model": "step-400", "temperature": None})
    assert (changed["model"], changed.get("temperature"), changed["name"]) == ("step-400", None, "Anna")
    assert (await lab.ok("GET", f"/agents/{first['agent_id']}"))["model"] == "step-400"
    await lab.ok("DELETE", f"/agents/{first['agent_id']}")
    assert_error(await lab.call("GET", f"/agents/{first['agent_id']}"), 404, "agent_not_found")


async def test_a_key_is_sent_to_the_endpoint_and_is_nowhere_else(inner: House, lab: Client, data: Path) -> None:
    with policy(friendly) as server:
        agent = await add(lab, server.url, api_key=CANARY)
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        spoken = await lab.call("POST", f"/agents/{agent['agent_id']}/chat", body)
        assert spoken.status_code == 200
        assert server.asked[0].headers["authorization"] == f"Bearer {CANARY}"
    shown = await lab.call("GET", "/agents")
    assert CANARY not in shown.text + spoken.text + str(agent) + inner.logs.getvalue()
    files = await asyncio.to_thread(_all_bytes, data)
    assert CANARY.encode() not in files
    assert b"anna-8b" in files  # or the line above could not fail


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_key_goes_to_no_other_address_and_may_be_changed(lab: Client) -> None:
    with policy(friendly) as server:
        agent = await add(lab, "http://127.0.0.1:9009", api_key=CANARY)
        path = f"/agents/{agent['agent_id']}"
        assert (await lab.ok("PATCH", path, {"name": "Berta"}))["has_api_key"]
        moved = await lab.ok("PATCH", path, {"base_url": server.url})
        assert not moved["has_api_key"]
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        await lab.ok("POST", f"{path}/chat", body)
        assert CANARY not in server.asked[0].headers["authorization"]
        assert (await lab.ok("PATCH", path, {"api_key": "another"}))["has_api_key"]
        await lab.ok("POST", f"{path}/chat", body)
        assert server.asked[1].headers["authorization"] == "Bearer another"


@pytest.mark.parametrize("changes", [{}, {"name": None}, {"model": None}, {"base_url": "nonsense"}, {"kind": "x"}])
async def test_a_change_that_is_none_is_refused(lab: Client, changes: Json) -> None:
    agent = await add(lab, "http://127.0.0.1:9009")
    assert_error(await lab.call("PATCH", f"/agents/{agent['agent_id']}", changes), 400, "invalid_request")
    assert (await lab.ok("GET", f"/agents/{agent['agent_id']}"))["base_url"] == agent["base_url"]


async def test_a_key_of_another_agent_cannot_be_put_in_its_place(lab: Client, data: Path) -> None:
    with policy(friendly) as server:
        mine, other = await add(lab, server.url), await add(lab, server.url, api_key=CANARY)
        with sqlite3.connect(data / "labs.sqlite") as connection:
            stolen = (
                "UPDATE agent SET sealed_key = (SELECT sealed_key FROM agent WHERE agent_id = ?) WHERE agent_id = ?"
            )
            connection.execute(stolen, (other["agent_id"], mine["agent_id"]))
        connection.close()
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        assert_error(await lab.call("POST", f"/agents/{mine['agent_id']}/chat", body), 502, "agent_failed")
        assert server.asked == []


@pytest.mark.parametrize(
    "url", ["http://agent.example/v1", "https://127.0.0.1/v1", "https://10.0.0.1/v1", "https://[::1]/v1", "nonsense"]
)
async def test_only_public_https_addresses_are_asked(labs: Client, url: str) -> None:
    response = await labs.call("POST", "/agents", {"name": "Anna", "base_url": url, "model": "m"})
    data = assert_error(response, 400, "invalid_request")
    assert data["errors"][0]["loc"] == ["base_url"]
    allowed = "The operator of the server can allow it with LABS_PRIVATE_ADDRESSES=true."
    assert (allowed in data["errors"][0]["msg"]) is (url != "nonsense")


async def test_link_local_addresses_stay_refused_and_queries_have_no_place(lab: Client) -> None:
    for url in ("http://169.254.169.254/v1", "http://127.0.0.1:9/v1?key=secret"):
        response = await lab.call("POST", "/agents", {"name": "Anna", "base_url": url, "model": "m"})
        data = assert_error(response, 400, "invalid_request")
        assert "LABS_" not in data["errors"][0]["msg"]  # no setting allows them


async def test_an_agent_that_was_allowed_once_is_told_of_the_setting_as_well(
    data: Path, matcher: Matcher, library: Library
) -> None:
    async with running_house(data, matcher, library, private_addresses=True) as lax, lax.client() as client:
        agent = await add(client, "http://127.0.0.1:9009")
    async with running_house(data, matcher, library) as strict, strict.client() as client:
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        response = await client.call("POST", f"/agents/{agent['agent_id']}/chat", body)
    assert_error(response, 502, "agent_failed")
    assert "its address is allowed only with LABS_PRIVATE_ADDRESSES=true" in response.json()["message"]


async def test_an_agent_is_told_the_public_card_and_the_tools_of_a_scenario(lab: Client) -> None:
    with policy(friendly) as server:
        agent = await add(lab, server.url)
        body = {"messages": [{"role": "user", "content": "Hello."}], **WHERE}
        spoken = await lab.ok("POST", f"/agents/{agent['agent_id']}/chat", body)
        assert spoken["message"] == {"role": "assistant", "content": LINES[0]}
        assert spoken["usage"]["output_tokens"] > 0
    card = await lab.ok("GET", f"/collections/{COLLECTION}/scenarios/{SCENARIO}")
    [asked] = server.asked
    assert asked.system == f"{card['name']}. {card['description']}"
    tools = (await lab.create())["tools"]
    assert tools  # the scenario has some, or the next line could not fail
    assert [(tool["function"]["name"], tool["function"]["parameters"]) for tool in asked.body["tools"]] == [
        (tool["id"], tool["input_schema"]) for tool in tools
    ]


@pytest.mark.parametrize("status", [302, 307])
async def test_an_endpoint_sends_nobody_elsewhere(lab: Client, status: int) -> None:
    with policy(friendly) as inside:
        elsewhere = {"Location": f"{inside.url}/v1/chat/completions"}
        with policy(Say(None, status=status, headers=elsewhere, raw=b"")) as server:
            agent = await add(lab, server.url)
            body = {"messages": [{"role": "user", "content": "Hello."}]}
            assert_error(await lab.call("POST", f"/agents/{agent['agent_id']}/chat", body), 502, "agent_failed")
    assert inside.asked == []


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (Fail(Mode.RATE_LIMITED), "limits the rate"),
        (Fail(Mode.RESET), "connection"),
        (Fail(Mode.EMPTY), "empty"),
        (Say("x" * 10_001), "does not allow"),
        (Say(None, raw=b"<html>quokka</html>"), "no chat completion"),
    ],
)
async def test_an_endpoint_that_fails_is_a_502_with_its_cause(lab: Client, step: Any, cause: str) -> None:
    with policy(step) as server:
        agent = await add(lab, server.url)
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        response = await lab.call("POST", f"/agents/{agent['agent_id']}/chat", body)
        assert_error(response, 502, "agent_failed")
        assert cause in response.json()["message"]
        assert "quokka" not in response.text


# --- evaluate_agent -------------------------------------------------------------------------------


@pytest.mark.slow
async def test_an_agent_plays_every_scenario_with_every_seed_for_the_reward_of_episodes(lab: Client) -> None:
    with policy(friendly) as server:
        agent = await add(lab, server.url)
        finished = await evaluated(lab, agent, seeds=[1, 2, 3], collection_slug=COLLECTION)
        assert (finished["status"], finished["counts"]["done"]) == ("completed", 3)
        lines = await results(lab, finished)
    assert [line["seed"] for line in lines] == [1, 2, 3]
    for line in lines:
        episode = await lab.ok("GET", f"/episodes/{line['episode_id']}")
        assert episode["metadata"]["agent_id"] == agent["agent_id"]
        assert episode["rewards"][-1] == line["reward"]
        again = await lab.ok("POST", "/evaluate", {**WHERE, "messages": episode["messages"]})
        assert (again["reward"], again["scoring_version"]) == (line["reward"], line["scoring_version"])
        by_hand = await _by_hand(lab, line["seed"])
        assert by_hand == line["reward"]
    report = await lab.ok("GET", f"/jobs/{finished['job_id']}/report")
    assert report["mean"] == pytest.approx(sum(line["reward"] for line in lines) / 3)


async def _by_hand(lab: Client, seed: int) -> float:
    """What the same agent gets by calls of POST /episodes."""
    episode = await lab.ok("POST", "/episodes", {**WHERE, "config": {"seed": seed, "observation_role": "user"}})
    taken: Json = {}
    for number in range(episode["max_turns"]):
        message = {"role": "assistant", "content": LINES[number % len(LINES)]}
        taken = await lab.say(episode, message)
        if taken["episode_complete"]:
            break
    return float(taken["reward"])


async def test_each_turn_that_an_agent_plays_is_charged_once(lab: Client) -> None:
    before = (await lab.ok("GET", "/usage"))["data"][0]
    with policy(friendly) as server:
        agent = await add(lab, server.url)
        [line] = await results(lab, await evaluated(lab, agent, seeds=[1], **WHERE))
    after = (await lab.ok("GET", "/usage"))["data"][0]
    assert line["turns"] > 1
    assert after["turns"] - before["turns"] == line["turns"]
    assert after["evaluations"] == before["evaluations"]
    episode = await lab.ok("GET", f"/episodes/{line['episode_id']}")
    spoken = sum(len(each["content"]) for each in episode["messages"] if each["role"] == "assistant")
    assert after["characters"] - before["characters"] > spoken


async def test_items_may_name_scenario_and_seed_themselves(lab: Client) -> None:
    with policy(friendly) as server:
        agent = await add(lab, server.url)
        items = [{"id": "a", "seed": 5}, {"seed": "five"}, {"seed": 5, "scenario_slug": "no-such"}]
        finished = await evaluated(lab, agent, items=items, **WHERE)
    assert (finished["counts"]["done"], finished["counts"]["failed"]) == (1, 2)
    found = await results(lab, finished)
    assert [line.get("code", line["status"]) for line in found] == ["success", "invalid_request", "scenario_not_found"]
    body = {"type": "evaluate_agent", "items": [{"seed": 1}], **WHERE}
    options = {"agent_id": agent["agent_id"], "seeds": [1]}
    assert_error(await lab.call("POST", "/jobs", {**body, "agent": options}), 400, "invalid_request")


@pytest.mark.slow
async def test_an_agent_that_fails_gets_no_reward_and_goes_on_where_it_was(inner: House, lab: Client) -> None:
    broken = True

    def moody(asked: Asked) -> Any:
        said = sum(message["role"] == "assistant" for message in asked.body["messages"])
        return Fail(Mode.OVERLOADED) if broken and said == 1 else LINES[said % len(LINES)]

    with policy(moody) as server:
        agent = await add(lab, server.url)
        job = await lab.ok(
            "POST", "/jobs", {"type": "evaluate_agent", "agent": {"agent_id": agent["agent_id"], "seeds": [1]}, **WHERE}
        )
        finished = await _over_with_pauses(inner, lab, job)
        assert finished["counts"]["dead"] == 1
        [line] = await results(lab, finished)
        assert (line["status"], line["code"]) == ("error", "agent_failed")
        assert "server error" in line["message"]
        assert "reward" not in line
        assert (await lab.ok("GET", "/usage"))["data"][0]["turns"] == 1
        assert (await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}"))["data"] == []
        broken = False
        await lab.ok("POST", f"/jobs/{job['job_id']}/retry")
        finished = await over(lab, job)
        assert finished["counts"]["done"] == 1
    [line] = await results(lab, finished)
    # Of the attempts that failed, too, each turn is charged once.
    assert (await lab.ok("GET", "/usage"))["data"][0]["turns"] == line["turns"] > 1
    openings = [a for a in server.asked if not any(m["role"] == "assistant" for m in a.body["messages"])]
    assert len(openings) == 1  # the first turn was played before the failure, and was not played again


async def _over_with_pauses(inner: House, lab: Client, job: Json) -> Json:
    """The job once it is over; its items wait between attempts by the clock of the house, which is moved on."""
    async with asyncio.timeout(60.0):
        while (found := await lab.ok("GET", f"/jobs/{job['job_id']}"))["status"] in ("queued", "running"):
            inner.clock.advance(timedelta(seconds=1))
            await asyncio.sleep(0.05)
    return found


async def test_jobs_of_agents_say_what_they_lack(lab: Client) -> None:
    with_reward = {"agent": {"agent_id": "agent_x"}, "reward_config": {"skip_safety_gate": True}}
    for fields in ({}, {"agent": {"agent_id": "agent_x", "seeds": [1, 1]}}, with_reward):
        assert_error(await lab.call("POST", "/jobs", {"type": "evaluate_agent", **fields}), 400, "invalid_request")
    unknown = {"type": "evaluate_agent", "agent": {"agent_id": "agent_x"}, **WHERE}
    assert_error(await lab.call("POST", "/jobs", unknown), 404, "agent_not_found")
    agent = await add(lab, "http://127.0.0.1:9009")
    nowhere = {"type": "evaluate_agent", "agent": {"agent_id": agent["agent_id"]}}
    assert_error(await lab.call("POST", "/jobs", nowhere), 400, "invalid_request")


async def test_having_an_agent_play_takes_a_key_that_may_play(inner: House) -> None:
    player, scorer_only = await inner.key("acme"), await inner.key("acme", scopes=[Scope.SCORE])
    inner.end_development_mode()
    async with inner.client(player) as owner, inner.client(scorer_only) as scorer:
        agent = await add(owner, "http://127.0.0.1:9009")
        body = {"type": "evaluate_agent", "agent": {"agent_id": agent["agent_id"]}, **WHERE}
        assert_error(await scorer.call("POST", "/jobs", body), 403, "insufficient_scope")


# --- leaderboard ----------------------------------------------------------------------------------


async def test_the_leaderboard_ranks_agents_by_their_mean_with_intervals(lab: Client) -> None:
    with policy(friendly) as good, policy("I do not care.") as bad:
        best, worst = await add(lab, good.url), await add(lab, bad.url, name="Berta")
        for agent in (worst, best):
            await evaluated(lab, agent, seeds=[1, 2, 3], **WHERE)
        await evaluated(lab, best, seeds=[1], **WHERE)  # a seed counts once, however often it is played
    board = await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}")
    assert [(row["rank"], row["name"]) for row in board["data"]] == [(1, "Anna"), (2, "Berta")]
    first = board["data"][0]
    assert first["episodes"] == 4
    assert first["scenarios"][SCENARIO]["seeds"] == 3
    assert board["passes_at"] == 0.7
    sure = await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}&passes_at={first['mean'] / 2:.4f}")
    assert [row["pass_k"] for row in sure["data"]] == [{"1": 1.0, "2": 1.0}, {"1": 0.0, "2": 0.0}]
    assert_error(
        await lab.call("GET", f"/leaderboard?collection_slug={COLLECTION}&passes_at=2"), 400, "invalid_request"
    )
    assert first["interval"]["low"] <= first["mean"] <= first["interval"]["high"]
    assert board["data"][1]["mean"] < first["mean"]
    assert (board["scenarios"], board["other_versions"]) == ([SCENARIO], {})
    old = await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}&scoring_version=sv_000000000000")
    assert (old["data"], old["other_versions"]) == ([], {board["scoring_version"]: 7})
    one = await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}&scenario_slug={SCENARIO}")
    assert one["data"] == board["data"]
    await lab.ok("DELETE", f"/agents/{best['agent_id']}")
    board = await lab.ok("GET", f"/leaderboard?collection_slug={COLLECTION}")
    assert [(row["rank"], row["name"]) for row in board["data"]] == [(1, "Berta")]


async def test_a_lab_sees_its_own_agents_alone(inner: House) -> None:
    with policy(friendly) as server:
        async with inner.client(await inner.key("acme")) as owner, inner.client(await inner.key("rival")) as rival:
            inner.end_development_mode()
            agent = await add(owner, server.url)
            await evaluated(owner, agent, seeds=[1], **WHERE)
            assert len((await owner.ok("GET", f"/leaderboard?collection_slug={COLLECTION}"))["data"]) == 1
            assert (await rival.ok("GET", f"/leaderboard?collection_slug={COLLECTION}"))["data"] == []
            body = {"messages": [{"role": "user", "content": "Hello."}]}
            assert_error(await rival.call("POST", f"/agents/{agent['agent_id']}/chat", body), 404, "agent_not_found")


async def test_the_leaderboard_names_what_there_is_not(lab: Client) -> None:
    assert_error(await lab.call("GET", "/leaderboard"), 400, "invalid_request")
    assert_error(await lab.call("GET", "/leaderboard?collection_slug=no-such"), 404, "collection_not_found")
