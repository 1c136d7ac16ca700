"""POST, GET and DELETE /episodes: creating, reading, listing, ending, expiring."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reward_server.auth.scopes import Scope
from tests.contract.house import OTHER, WHERE, Client, House, Json, agent, assert_error

pytestmark = pytest.mark.one_house

FIRST = "Good morning. How did it happen?"
HOUR = timedelta(hours=1)


# --- create ---------------------------------------------------------------------------------------


async def test_creating_returns_the_documented_fields(labs: Client) -> None:
    body = await labs.ok("POST", "/episodes", WHERE)
    documented = {
        "episode_id",
        "initial_observation",
        "scenario",
        "tools",
        "max_turns",
        "scoring_version",
        "expires_at",
    }
    assert set(body) == documented | {"request_id"}
    assert body["episode_id"].startswith("ep_")
    assert set(body["initial_observation"]) == {"role", "content"}
    assert body["initial_observation"]["role"] == "assistant"
    assert body["max_turns"] == 8


async def test_an_episode_comes_with_the_scenarios_public_card(labs: Client, episode: Json) -> None:
    card = await labs.ok("GET", f"/collections/{WHERE['collection_slug']}/scenarios/{WHERE['scenario_slug']}")
    assert episode["scenario"] == {"name": card["name"], "description": card["description"]}
    group = await labs.ok("POST", "/batch/episodes", {**WHERE, "count": 2})
    assert [each["scenario"] for each in group["episodes"]] == [episode["scenario"]] * 2


async def test_tools_are_described_in_full(labs: Client) -> None:
    decision, artifact = (await labs.create())["tools"]
    assert decision.pop("input_schema")["required"] == ["value"]
    assert decision == {
        "id": "repair",
        "type": "decision",
        "name": "Book a repair",
        "mode": "options",
        "description": "Books the repair. Use it once.",
        "options": ["new_tube", "new_tyre", "full_service"],
    }
    assert set(artifact) == {"id", "type", "name", "mode", "json_schema", "input_schema"}
    assert artifact["json_schema"]["required"] == ["summary"]


@pytest.mark.parametrize("field", ["collection_slug", "scenario_slug"])
async def test_both_slugs_are_required(labs: Client, field: str) -> None:
    body = {name: value for name, value in WHERE.items() if name != field}
    data = assert_error(await labs.call("POST", "/episodes", body), 400, "invalid_request")
    assert data["errors"] == [{"loc": [field], "msg": "Is required."}]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"collection_slug": "unknown"}, "collection_not_found"),
        ({"scenario_slug": "unknown"}, "scenario_not_found"),
        ({"scenario_slug": "lost-key"}, "scenario_not_found"),
    ],
)
async def test_unknown_things_are_404(labs: Client, change: Json, code: str) -> None:
    assert_error(await labs.call("POST", "/episodes", WHERE | change), 404, code)


@pytest.mark.parametrize("turns", [1, 5, 8])
async def test_max_turns_may_be_lowered(labs: Client, turns: int) -> None:
    episode = await labs.create(config={"max_turns": turns})
    assert episode["max_turns"] == turns
    assert (await labs.read(episode))["max_turns"] == turns


@pytest.mark.parametrize("turns", [0, -1, 9, 50, 51, 10**30, 2.5, "5", True])
async def test_max_turns_out_of_range_is_400(labs: Client, turns: object) -> None:
    response = await labs.call("POST", "/episodes", {**WHERE, "config": {"max_turns": turns}})
    assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("seed", [0, -1, 7, 2**63 - 1, -(2**63)])
async def test_a_seed_is_any_64_bit_integer(labs: Client, seed: int) -> None:
    await labs.create(config={"seed": seed})


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 1.5, "7", True, []])
async def test_another_seed_is_400(labs: Client, seed: object) -> None:
    response = await labs.call("POST", "/episodes", {**WHERE, "config": {"seed": seed}})
    assert_error(response, 400, "invalid_request")


async def test_without_a_seed_one_is_drawn(labs: Client, house: House) -> None:
    openings = set()
    for seed in range(12):
        house.seeds.append(seed)
        openings.add((await labs.ok("POST", "/episodes", WHERE))["initial_observation"]["content"])
    assert len(openings) == 2


async def test_the_drawn_seed_decides_as_a_given_one(labs: Client, house: House) -> None:
    house.seeds.append(3)
    drawn = await labs.ok("POST", "/episodes", WHERE)
    given = await labs.ok("POST", "/episodes", {**WHERE, "config": {"seed": 3}})
    assert drawn["initial_observation"] == given["initial_observation"]
    assert (await labs.say(drawn, FIRST))["observation"] == (await labs.say(given, FIRST))["observation"]


async def test_the_persona_may_be_chosen(labs: Client) -> None:
    personas = (await labs.ok("GET", "/collections/bike-shop/scenarios/flat-tyre"))["personas"]
    assert personas == ["plainspoken", "guarded"]
    for persona in personas:
        await labs.create(config={"persona_slug": persona})


@pytest.mark.parametrize("persona", ["unknown", "talkative", "", 7, "x" * 200])
async def test_a_persona_the_scenario_does_not_have_is_400(labs: Client, persona: object) -> None:
    response = await labs.call("POST", "/episodes", {**WHERE, "config": {"persona_slug": persona}})
    assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize("role", ["system", "", "User", 7])
async def test_the_observation_role_is_assistant_or_user(labs: Client, role: object) -> None:
    response = await labs.call("POST", "/episodes", {**WHERE, "config": {"observation_role": role}})
    assert_error(response, 400, "invalid_request")


async def test_metadata_is_echoed(labs: Client) -> None:
    metadata = {"run": "r1", "step": 3, "tags": ["a", None, {"b": 1.5}], "ünï": "😀", "on": True}
    episode = await labs.create(config={"metadata": metadata})
    assert (await labs.read(episode))["metadata"] == metadata
    assert (await labs.ok("GET", "/episodes"))["data"][0]["metadata"] == metadata
    assert "metadata" not in await labs.read(await labs.create())


@pytest.mark.parametrize(("characters", "fits"), [(4096 - len('{"a":""}'), True), (4097 - len('{"a":""}'), False)])
async def test_metadata_is_at_most_4_kb(labs: Client, characters: int, fits: bool) -> None:
    body = {**WHERE, "config": {"metadata": {"a": "x" * characters}}}
    response = await labs.call("POST", "/episodes", body)
    if fits:
        assert response.status_code == 200
    else:
        data = assert_error(response, 400, "invalid_request")
        assert data["errors"][0]["loc"] == ["config", "metadata"]


@pytest.mark.parametrize("metadata", ["text", [], 7, True])
async def test_metadata_is_an_object(labs: Client, metadata: object) -> None:
    response = await labs.call("POST", "/episodes", {**WHERE, "config": {"metadata": metadata}})
    assert_error(response, 400, "invalid_request")


async def test_an_unknown_field_is_400(labs: Client) -> None:
    assert_error(await labs.call("POST", "/episodes", {**WHERE, "configuration": {}}), 400, "invalid_request")
    assert_error(await labs.call("POST", "/episodes", {**WHERE, "config": {"sead": 1}}), 400, "invalid_request")


async def test_an_empty_config_is_the_default(labs: Client) -> None:
    for config in ({}, None):
        assert (await labs.ok("POST", "/episodes", {**WHERE, "config": config}))["max_turns"] == 8


# --- read and end ---------------------------------------------------------------------------------


async def test_what_was_drawn_is_for_operators_and_keys_with_full_scores(house: House) -> None:
    plain = await house.key()
    for key, sees in (
        (plain, False),
        (await house.key(full_scores=True), True),
        (await house.key(scopes=(Scope.TRAIN, Scope.OPERATE)), True),
    ):
        async with house.client(key) as labs:
            card = await labs.ok("GET", f"/collections/{WHERE['collection_slug']}/scenarios/{WHERE['scenario_slug']}")
            episode = await labs.create(config={"seed": 7})
            answers = [
                await labs.read(episode),
                *(await labs.ok("GET", "/episodes"))["data"],
                await labs.ok("DELETE", f"/episodes/{episode['episode_id']}"),
            ]
            for body in answers:
                assert body.get("seed") == (7 if sees else None)
                assert (body["persona_slug"] in card["personas"]) if sees else "persona_slug" not in body


async def test_reading_returns_the_public_transcript(labs: Client, episode: Json) -> None:
    first, second = await labs.say(episode, FIRST), await labs.say(episode, "When do you need it back?")
    body = await labs.read(episode)
    assert set(body) == {
        "episode_id",
        "collection_slug",
        "scenario_slug",
        "status",
        "turn",
        "max_turns",
        "persona_slug",
        "seed",
        "messages",
        "rewards",
        "scoring_version",
        "created_at",
        "expires_at",
        "request_id",
    }
    assert (body["collection_slug"], body["scenario_slug"]) == ("bike-shop", "flat-tyre")
    assert (body["status"], body["turn"]) == ("active", 2)
    assert body["messages"] == [
        episode["initial_observation"],
        agent(FIRST),
        first["observation"],
        agent("When do you need it back?"),
        second["observation"],
    ]
    assert body["rewards"] == [first["reward"], second["reward"]]


async def test_a_complete_episode_says_why(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST, terminate=True)
    body = await labs.read(episode)
    assert (body["status"], body["terminal_reason"]) == ("complete", "client_terminated")


async def test_deleting_ends_an_active_episode_and_returns_it(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST)
    ended = await labs.ok("DELETE", f"/episodes/{episode['episode_id']}")
    assert (ended["status"], ended["terminal_reason"], ended["turn"]) == ("complete", "client_terminated", 1)
    assert len(ended["messages"]) == 3
    read = await labs.read(episode)
    assert {k: v for k, v in read.items() if k != "request_id"} == {k: v for k, v in ended.items() if k != "request_id"}
    assert_error(await labs.turn(episode, "Hello?"), 400, "episode_complete")


async def test_deleting_a_complete_episode_changes_nothing(labs: Client) -> None:
    episode = await labs.create(config={"max_turns": 1})
    await labs.say(episode, FIRST)
    for _ in range(2):
        ended = await labs.ok("DELETE", f"/episodes/{episode['episode_id']}")
        assert ended["terminal_reason"] == "max_turns_reached"


@pytest.mark.parametrize("episode_id", ["ep_aaaaaaaaaaaaaaaaaaaaaaaa", "ep_", "x", "EP_AAAA", "%00", "ev_1", "..;"])
async def test_an_unknown_episode_is_404(labs: Client, episode_id: str) -> None:
    path = f"/episodes/{episode_id}"
    assert_error(await labs.call("GET", path), 404, "episode_not_found")
    assert_error(await labs.call("DELETE", path), 404, "episode_not_found")
    body = {"messages": [agent("Hi")]}
    assert_error(await labs.call("POST", f"{path}/turns", body), 404, "episode_not_found")


# --- expiry ---------------------------------------------------------------------------------------


async def test_an_episode_expires_24_hours_after_its_last_turn(labs: Client, house: House, episode: Json) -> None:
    house.clock.advance(23 * HOUR)
    await labs.say(episode, FIRST)
    assert (await labs.read(episode))["expires_at"] > episode["expires_at"]
    house.clock.advance(23 * HOUR)
    assert (await labs.say(episode, "When do you need it back?"))["turn"] == 2
    house.clock.advance(24 * HOUR)
    path = f"/episodes/{episode['episode_id']}"
    assert_error(await labs.turn(episode, "Hello?"), 404, "episode_not_found")
    assert_error(await labs.call("GET", path), 404, "episode_not_found")
    assert_error(await labs.call("DELETE", path), 404, "episode_not_found")


async def test_reading_is_no_activity(labs: Client, house: House, episode: Json) -> None:
    house.clock.advance(23 * HOUR)
    assert (await labs.read(episode))["expires_at"] == episode["expires_at"]
    house.clock.advance(HOUR)
    assert_error(await labs.turn(episode, FIRST), 404, "episode_not_found")


async def test_a_retry_of_an_expired_episode_is_404(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    house.clock.advance(24 * HOUR)
    assert_error(await labs.turn(episode, *log[:2]), 404, "episode_not_found")


async def test_a_complete_episode_can_be_read_for_good(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, FIRST, terminate=True)
    house.clock.advance(1000 * HOUR)
    assert (await labs.read(episode))["status"] == "complete"
    assert_error(await labs.turn(episode, "Hello?"), 400, "episode_complete")


# --- lists ----------------------------------------------------------------------------------------


async def ids(labs: Client, query: str = "") -> list[str]:
    return [body["episode_id"] for body in (await labs.ok("GET", f"/episodes{query}"))["data"]]


async def test_lists_are_newest_first_and_hold_whole_episodes(labs: Client, house: House) -> None:
    made = []
    for _ in range(3):
        made.append(await labs.create())
        house.clock.advance(HOUR)
    await labs.say(made[1], FIRST)
    assert await ids(labs) == [episode["episode_id"] for episode in reversed(made)]
    listed = (await labs.ok("GET", "/episodes"))["data"][1]
    assert listed == {k: v for k, v in (await labs.read(made[1])).items() if k != "request_id"}


@pytest.mark.parametrize("moving", [True, False])
async def test_pages_hold_every_episode_once(labs: Client, house: House, moving: bool) -> None:
    made = set()
    for _ in range(7):
        made.add((await labs.create())["episode_id"])
        if moving:
            house.clock.advance(HOUR)
    seen: list[str] = []
    cursor = ""
    sizes = []
    while True:
        page = await labs.ok("GET", f"/episodes?limit=3{cursor}")
        seen += [body["episode_id"] for body in page["data"]]
        sizes.append(len(page["data"]))
        if "next_cursor" not in page:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sizes == [3, 3, 1]
    assert len(seen) == 7
    assert set(seen) == made


async def test_new_episodes_do_not_disturb_a_reader(labs: Client, house: House) -> None:
    for _ in range(4):
        await labs.create()
        house.clock.advance(HOUR)
    page = await labs.ok("GET", "/episodes?limit=2")
    newer = await labs.create()
    following = await ids(labs, f"?limit=10&cursor={page['next_cursor']}")
    assert len(following) == 2
    assert newer["episode_id"] not in following


async def test_a_last_page_that_is_full_has_no_cursor(labs: Client) -> None:
    await labs.create()
    await labs.create()
    assert "next_cursor" not in await labs.ok("GET", "/episodes?limit=2")


async def test_a_list_may_be_empty(labs: Client) -> None:
    body = await labs.ok("GET", "/episodes")
    assert (body["data"], set(body)) == ([], {"data", "request_id"})


async def test_filters(labs: Client, house: House) -> None:
    old = await labs.create()
    house.clock.advance(20 * HOUR)
    done = await labs.create()
    await labs.say(done, FIRST, terminate=True)
    other = await labs.ok("POST", "/episodes", OTHER)
    house.clock.advance(5 * HOUR)
    assert await ids(labs, "?collection_slug=front-desk") == [other["episode_id"]]
    assert await ids(labs, "?collection_slug=unknown") == []
    assert await ids(labs, "?scenario_slug=lost-key") == [other["episode_id"]]
    assert await ids(labs, "?collection_slug=front-desk&scenario_slug=flat-tyre") == []
    assert await ids(labs, "?scenario_slug=flat-tyre&status=complete") == [done["episode_id"]]
    assert await ids(labs, "?status=expired") == [old["episode_id"]]
    assert await ids(labs, "?status=complete") == [done["episode_id"]]
    assert await ids(labs, "?status=active") == [other["episode_id"]]
    assert await ids(labs, "?status=active&collection_slug=bike-shop") == []
    statuses = {body["episode_id"]: body["status"] for body in (await labs.ok("GET", "/episodes"))["data"]}
    assert statuses[old["episode_id"]] == "expired"


@pytest.mark.parametrize(
    "limit", ["0", "-1", "101", "1.5", "ten", "", "1e9", "9" * 100, "1_0", "1.0", "%2B1", "%201", "%D9%A3"]
)
async def test_a_made_up_limit_is_400(labs: Client, limit: str) -> None:
    assert_error(await labs.call("GET", f"/episodes?limit={limit}"), 400, "invalid_request")


@pytest.mark.parametrize("cursor", ["x", "", "null", "AAAA", "%00", "a" * 10_000])
async def test_a_made_up_cursor_is_400(labs: Client, cursor: str) -> None:
    assert_error(await labs.call("GET", f"/episodes?cursor={cursor}"), 400, "invalid_cursor")


async def test_a_cursor_of_another_lab_is_400(house: House) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("globex")) as globex:
        for _ in range(2):
            await acme.create()
            await globex.create()
        cursor = (await acme.ok("GET", "/episodes?limit=1"))["next_cursor"]
        assert_error(await globex.call("GET", f"/episodes?cursor={cursor}"), 400, "invalid_cursor")


@pytest.mark.parametrize("status", ["", "done", "ACTIVE", "active,complete"])
async def test_an_unknown_status_is_400(labs: Client, status: Any) -> None:
    assert_error(await labs.call("GET", f"/episodes?status={status}"), 400, "invalid_request")


@pytest.mark.parametrize("slug", ["%00", "bike-shop%00", "x" * 129, "%ED%A0%80", "bike-shop%FF"])
async def test_an_impossible_collection_or_scenario_is_400(labs: Client, slug: str) -> None:
    for name in ("collection_slug", "scenario_slug"):
        assert_error(await labs.call("GET", f"/episodes?{name}={slug}"), 400, "invalid_request")
