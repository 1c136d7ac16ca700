"""The Open Reward Standard at /compat/ors and at the root, where its clients ask."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner.seeds import FIRST_HELD_OUT_SEED
from personas.reading.matcher import Matcher
from reward_server.auth.lab import Plan
from reward_server.compat import ors_stream
from reward_server.compat.ors_stream import pieces_of
from reward_server.compat.ors_tools import tools_of, turn_of
from reward_server.compat.ors_wire import Call
from reward_server.errors import JudgeFailed, Overloaded
from reward_server.ids import IdPrefix, new_id
from scenarios.library import Library
from tests.contract.house import (
    COLLECTION,
    OTHER,
    SCENARIO,
    WHERE,
    Client,
    House,
    Json,
    assert_error,
    running_house,
)
from tests.contract.ors_client import NOTHING, OrsClient, StreamError, events_of, outcome_of
from tests.contract.test_over_a_socket import listening
from tests.contract.test_secrecy import leaks

pytestmark = pytest.mark.one_house

NAME = f"{COLLECTION}/{SCENARIO}"
ASKS = ("How did the flat tyre happen, if I may ask?", "How old is the tyre?")
TASK = {**WHERE, "seed": 7}
PREFIX = "/api/v1/compat/ors"


@pytest.fixture
async def ors(labs: Client) -> OrsClient:
    """openreward in development mode, with a task of two turns."""
    return await begun(OrsClient(labs.http, COLLECTION), max_turns=2)


async def begun(client: OrsClient, **fields: Any) -> OrsClient:
    await client.open(task_spec={**TASK, **fields}, env_name=COLLECTION)
    return client


async def log_of(labs: Client, called: Json) -> Json:
    return await labs.ok("GET", f"/episodes/{called['output']['metadata']['episode_id']}")


# --- the reward --------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_path", [False, True], ids=["openreward", "ors-sdk"])
async def test_the_last_call_has_the_reward_of_evaluate(labs: Client, in_path: bool) -> None:
    client = await begun(OrsClient(labs.http, COLLECTION, in_path=in_path), max_turns=2)
    about, opening = await client.ok("prompt")
    tools = await client.ok("task_tools")
    calls = [await client.call("reply", message=ask) for ask in ASKS]
    first, last = (call["output"] for call in calls)
    assert (first["reward"], first["finished"]) == (None, False)
    episode = await log_of(labs, calls[0])
    evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": episode["messages"], "agent_role": "user"})
    assert (last["reward"], last["finished"]) == (evaluated["reward"], True)
    assert evaluated["reward"] > 0
    assert last["metadata"]["scores"] == evaluated["scores"]
    assert last["metadata"]["terminal_reason"] == "max_turns_reached"
    # What the policy saw is the public card and the conversation, and nothing else.
    card = await labs.ok("GET", f"/collections/{COLLECTION}/scenarios/{SCENARIO}")
    assert card["description"] in about["text"]
    assert "at most 2 messages" in about["text"]
    heard = [message["content"] for message in episode["messages"] if message["role"] == "assistant"]
    assert [opening["text"].removeprefix("The person says:\n"), first["blocks"][0]["text"]] == heard[:2]
    assert [tool["name"] for tool in tools["tools"]] == ["reply", "finish", "repair", "job_sheet"]
    assert leaks("".join(client.received)) == []
    await client.close()


async def test_with_a_reward_for_each_call_it_comes_with_its_dimensions(
    data: Path, matcher: Matcher, library: Library
) -> None:
    async with running_house(data, matcher, library, step_rewards="each") as house, house.client() as labs:
        client = await begun(OrsClient(labs.http, COLLECTION), max_turns=2)
        calls = [await client.call("reply", message=ask) for ask in ASKS]
        episode = await log_of(labs, calls[0])
        evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": episode["messages"], "agent_role": "user"})
    assert [call["output"]["reward"] for call in calls] == episode["rewards"]
    assert [call["output"]["finished"] for call in calls] == [False, True]
    assert set(calls[0]["output"]["metadata"]["scores"]) == set(evaluated["scores"])
    assert calls[1]["output"]["metadata"]["scores"] == evaluated["scores"]


async def test_a_judge_that_failed_is_an_error_and_the_call_may_be_made_again(house: House, ors: OrsClient) -> None:
    house.failure = lambda request: JudgeFailed()
    with pytest.raises(StreamError, match="A judge failed"):
        await ors.call("reply", message=ASKS[0])
    assert "reward" not in "".join(ors.received)
    house.failure = lambda request: None
    assert (await ors.call("reply", message=ASKS[0]))["output"]["metadata"]["turn"] == 1


async def test_what_may_work_later_is_tried_again_within_the_call(house: House, ors: OrsClient) -> None:
    failures = [Overloaded(retry_after_s=0), Overloaded(retry_after_s=0)]
    house.failure = lambda request: failures.pop() if failures else None
    assert (await ors.call("reply", message=ASKS[0]))["ok"] is True
    assert failures == []


async def test_a_defect_is_an_error_that_quotes_nothing(house: House, ors: OrsClient) -> None:
    house.matcher.broken = True
    with pytest.raises(StreamError) as error:
        await ors.call("reply", message="What a strange thing to say about 17 penguins in the cellar.")
    assert "quokka" not in str(error.value)
    house.matcher.broken = False


# --- tools -------------------------------------------------------------------------------------------


async def test_finish_says_the_last_message_and_ends_the_conversation(labs: Client, ors: OrsClient) -> None:
    assert (await ors.ok("tools"))["terminal_tool"]["name"] == "finish"
    await ors.call("reply", message=ASKS[0])
    last = await ors.call("finish", message="Then I will put in a new tube.")
    assert (last["output"]["finished"], type(last["output"]["reward"])) == (True, float)
    episode = await log_of(labs, last)
    assert (episode["turn"], episode["status"], episode["terminal_reason"]) == (2, "complete", "client_terminated")
    after = await ors.call("reply", message="And?")
    assert (after["ok"], after["reason"]) == (False, "episode_finished")


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("submit", {"message": "Hello."}, "not_found"),
        ("reply", {}, "input_validation"),
        ("reply", {"message": ""}, "input_validation"),
        ("reply", {"message": None}, "input_validation"),
        ("reply", {"message": 5}, "input_validation"),
        ("reply", {"message": "Hello.", "tone": "kind"}, "input_validation"),
        ("reply", {"message": "a" * 10_001}, "input_validation"),
        ("finish", {"text": "Bye."}, "input_validation"),
        ("job_sheet", {"summary": "a" * 30_000}, "input_validation"),
    ],
)
async def test_a_call_that_cannot_be_played_is_told_to_the_policy_and_takes_no_turn(
    ors: OrsClient, name: str, arguments: Json, reason: str
) -> None:
    refused = await ors.call(name, **arguments)
    assert (refused["ok"], refused["reason"]) == (False, reason)
    assert refused["error"]
    assert (await ors.call("reply", message=ASKS[0]))["output"]["metadata"]["turn"] == 1


async def test_a_tool_of_the_scenario_is_called_with_words_beside_it(labs: Client, ors: OrsClient) -> None:
    called = await ors.call("repair", value="new_tube", message="I will put in a new tube.")
    said = (await log_of(labs, called))["messages"][1]
    assert said["content"] == "I will put in a new tube."
    assert said["tool_calls"] == [{"name": "repair", "input": {"value": "new_tube"}}]
    assert len(called["output"]["blocks"]) == 1


async def test_trl_sends_null_for_what_the_policy_left_out(labs: Client, ors: OrsClient) -> None:
    called = await ors.call("job_sheet", summary="A new tube.", urgent=None, message=None)
    said = (await log_of(labs, called))["messages"][1]
    assert (said["content"], said["tool_calls"][0]["input"]) == ("", {"summary": "A new tube."})
    assert len(called["output"]["blocks"]) == 1


async def test_a_wrong_input_of_a_scenarios_tool_is_played_and_told(ors: OrsClient) -> None:
    called = await ors.call("repair", value="new_bike")
    assert called["output"]["metadata"]["turn"] == 1
    assert "repair was not accepted" in called["output"]["blocks"][1]["text"]


def test_a_scenarios_tool_of_a_name_that_is_taken_has_another_one_here() -> None:
    schema = {"type": "object", "properties": {"message": {"type": "integer"}}, "required": ["message"]}
    tools = [{"id": "reply", "name": "Reply by post", "input_schema": schema}]
    assert [tool["name"] for tool in tools_of(tools)] == ["reply", "finish", "reply_"]
    assert tools_of(tools)[2]["input_schema"] == schema
    [message] = turn_of(Call(name="reply_", input={"message": 5}), tools).messages
    assert message.content == ""
    assert [(call.name, call.input) for call in message.tool_calls or ()] == [("reply", {"message": 5})]


# --- environments and tasks --------------------------------------------------------------------------


async def test_environments_are_collections_and_single_scenarios(labs: Client) -> None:
    client = OrsClient(labs.http, "env")
    names = (await labs.http.get("/list_environments")).json()
    assert names == ["bike-shop", "front-desk", "bike-shop/flat-tyre", "front-desk/lost-key"]
    assert await client.ok("splits") == [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
    # Of a collection, only the tools that all scenarios have; of a scenario, its own as well.
    for in_path in (False, True):
        for name, count in (("bike-shop/flat-tyre", 4), ("env", 2 + 2)):
            tools = await OrsClient(labs.http, name, in_path=in_path).ok("tools")
            assert len(tools["tools"]) == count, name


async def test_a_task_is_a_scenario_with_a_seed_of_its_split(labs: Client) -> None:
    client = OrsClient(labs.http, COLLECTION)
    counts = {split: (await client.ok("num_tasks", {"split": split}))["num_tasks"] for split in ("train", "test")}
    train, test = [(await client.ok("tasks", {"split": split}))["tasks"] for split in counts]
    assert [len(train), len(test)] == list(counts.values())
    assert all(task.keys() == {"collection_slug", "scenario_slug", "seed"} for task in (*train, *test))
    assert {task["seed"] for task in train}.isdisjoint(task["seed"] for task in test)
    # The learner holds out the same seeds, so what one trained on, the other does not measure.
    assert max(task["seed"] for task in train) < FIRST_HELD_OUT_SEED <= min(task["seed"] for task in test)
    for index in (0, 7, -1):
        one = await client.ok("task", {"split": "train", "index": index})
        assert (one["task"], one["env_name"]) == (train[index], COLLECTION)
    some = await client.ok("task_range", {"split": "test", "start": -3})
    assert some["tasks"] == test[-3:]
    assert (await client.ok("task_range", {"split": "test", "stop": 2}))["tasks"] == test[:2]


@pytest.mark.parametrize(
    ("call", "body", "loc"),
    [
        ("num_tasks", {"split": "validation"}, ["split"]),
        ("tasks", {}, ["split"]),
        ("task", {"split": "train", "index": 1000}, ["index"]),
        ("task", {"split": "train", "index": -1001}, ["index"]),
        ("task", {"split": "train", "index": 2**60}, ["index"]),
        ("task", {"split": "train", "index": "7"}, ["index"]),
        ("task_range", {"split": "train", "step": 2}, ["step"]),
    ],
)
async def test_a_task_that_is_not_there_is_400(labs: Client, call: str, body: Json, loc: list[str]) -> None:
    response = await OrsClient(labs.http, COLLECTION).post(call, body)
    assert assert_error(response, 400, "invalid_request")["errors"][0]["loc"] == loc


@pytest.mark.parametrize("name", ["bike-shopp", "bike-shop/flat-tire", "a/b/c", "x" * 4_000])
async def test_an_unknown_environment_is_404(labs: Client, name: str) -> None:
    client = OrsClient(labs.http, name)
    assert (await client.get("tools")).status_code == 404
    client.sid = new_id(IdPrefix.SESSION)
    assert (await client.post("create", {"split": "train", "index": 0}, own=False)).status_code == 404


async def test_a_session_plays_the_task_of_a_split_and_index(labs: Client) -> None:
    client = OrsClient(labs.http, NAME)
    await client.open(split="test", index=3)
    task = (await client.ok("task", {"split": "test", "index": 3}))["task"]
    called = await client.call("reply", message=ASKS[0])
    episode = await log_of(labs, called)
    assert [episode[name] for name in ("collection_slug", "scenario_slug")] == [COLLECTION, SCENARIO]
    again = await labs.ok("POST", "/episodes", {**WHERE, "config": {"seed": task["seed"]}})
    assert again["initial_observation"]["content"] == episode["messages"][0]["content"]


async def test_a_session_of_another_environment_than_its_calls_is_404(labs: Client) -> None:
    """ors-sdk names no environment beside split and index: the default one would be played without a word."""
    client = OrsClient(labs.http, "front-desk", in_path=True)
    await client.open(split="train", index=0)
    response = await client.get("prompt")
    assert_error(response, 404, "not_found")
    assert NAME in response.json()["message"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"split": "train"},
        {"index": 0},
        {"task_spec": TASK, "split": "train", "index": 0},
        {"task_spec": {**WHERE}},
        {"task_spec": {**TASK, "max_turns": 51}},
        {"split": "train", "index": 0, "toolset_name": "codex"},
    ],
)
async def test_a_session_needs_exactly_one_task(labs: Client, body: Json) -> None:
    client = OrsClient(labs.http, COLLECTION, sid=new_id(IdPrefix.SESSION))
    assert_error(await client.post("create", body, own=False), 400, "invalid_request")


# --- sessions ----------------------------------------------------------------------------------------


async def test_a_session_is_begun_once(house: House, labs: Client, ors: OrsClient) -> None:
    body = {"task_spec": {**TASK, "max_turns": 2}, "env_name": COLLECTION}
    assert (await ors.post("create", body, own=False)).status_code == 200
    other = {"task_spec": {**TASK, "seed": 8}, "env_name": COLLECTION}
    assert_error(await ors.post("create", other, own=False), 409, "episode_exists")
    assert len((await labs.ok("GET", "/episodes"))["data"]) == 1
    house.clock.advance(timedelta(hours=25))  # the stored answer is gone by then, the episode only has expired
    assert_error(await ors.post("create", body, own=False), 409, "episode_exists")


async def test_a_session_outlives_the_server(data: Path, matcher: Matcher, library: Library) -> None:
    """So another replica can serve it as well: no process keeps anything of it."""
    async with running_house(data, matcher, library) as house, house.client() as labs:
        client = await begun(OrsClient(labs.http, COLLECTION), max_turns=2)
        first = await client.call("reply", message=ASKS[0])
        call_id = dict(events_of(client.received[-1].splitlines()))["task_id"]
    async with running_house(data, matcher, library) as house, house.client() as labs:
        later = OrsClient(labs.http, COLLECTION, sid=client.sid)
        assert await later.call("reply", call_id, message=ASKS[0]) == first
        assert (await later.call("reply", message=ASKS[1]))["output"]["finished"] is True


@pytest.mark.parametrize("sid", ["", "sess_", "ep_" + "a" * 24, "sess_" + "a" * 25])
async def test_a_session_id_is_one_that_was_given_out(labs: Client, sid: str) -> None:
    client = OrsClient(labs.http, COLLECTION, key="", sid=sid)
    for response in (await client.get("prompt"), await client.post("ping", own=False)):
        data = assert_error(response, 400, "invalid_request")
        assert data["errors"][0]["loc"] == ["header", "X-Session-ID"]


async def test_a_session_lives_until_its_client_leaves(labs: Client, ors: OrsClient) -> None:
    assert (await ors.post("ping", own=False)).json()["status"] == "ok"
    called = await ors.call("reply", message=ASKS[0])
    await ors.close()
    assert (await log_of(labs, called))["terminal_reason"] == "client_terminated"
    await ors.close()
    unknown = OrsClient(labs.http, COLLECTION, sid=new_id(IdPrefix.SESSION))
    await unknown.close()
    assert_error(await unknown.post("ping", own=False), 404, "episode_not_found")


async def test_another_labs_session_is_like_one_that_does_not_exist(house: House) -> None:
    keys = [await house.key(lab, plan=Plan.CUSTOM, rate_per_minute=100_000) for lab in ("acme", "rival")]
    house.end_development_mode()
    async with house.client() as client:
        owner, rival = (OrsClient(client.http, COLLECTION, key) for key in keys)
        await begun(owner, max_turns=2)
        assert (await owner.call("reply", message=ASKS[0]))["output"]["metadata"]["turn"] == 1
        theirs, nobodys = [], []
        for sid, told in ((owner.sid, theirs), (new_id(IdPrefix.SESSION), nobodys)):
            rival.sid = sid
            call = await rival.post("call", {"name": "reply", "input": {"message": "Hello."}})
            for response in (
                *(await rival.get("prompt"), await rival.get("task_tools"), call),
                *[await rival.post(each, own=False) for each in ("ping", "delete", "delete_session")],
            ):
                body = response.json()
                told.append((response.status_code, body.get("message"), body.get("data", {}).get("code")))
        assert theirs == nobodys
        # With the same id, the rival begins an episode of its own.
        rival.sid = owner.sid
        assert (await rival.post("create", {"split": "train", "index": 0}, own=False)).status_code == 200
        last = (await owner.call("reply", message=ASKS[1]))["output"]
        assert (last["metadata"]["turn"], last["finished"]) == (2, True)


@pytest.mark.parametrize("header", ["X-API-Key", "Bearer", "Basic"])
async def test_the_key_comes_as_clients_send_it(house: House, header: str) -> None:
    key = await house.key()
    house.end_development_mode()
    async with house.client() as client:
        for sent, status in ((key, 200), (f"{key}x", 401), ("", 401)):
            basic = httpx2.BasicAuth("labs", sent)._auth_header
            headers = {
                "X-API-Key": {"X-API-Key": sent},
                "Bearer": {"Authorization": f"Bearer {sent}"},
                "Basic": {"Authorization": basic, "X-API-Key": ""},
            }[header]
            assert (await client.http.get("/list_environments", headers=headers)).status_code == status
        assert_error(await client.http.get("/list_environments"), 401, "unauthenticated")


async def test_a_page_can_neither_begin_nor_end_a_session(labs: Client, ors: OrsClient) -> None:
    """Without keys: a page of the web sends its origin, and may send forms and texts, but no header of clients."""
    for call in ("create_session", "create", "ping", "delete", "delete_session", "bike-shop/call"):
        for headers in (
            {**NOTHING, "Origin": "https://elsewhere.example"},
            {"Content-Type": "text/plain"},
            {"Content-Type": "text/plain", "X-Session-ID": ors.sid},
        ):
            for path in (f"/{call}", f"{PREFIX}/{call}"):
                response = await labs.http.post(path, headers=headers)
                assert_error(response, 415, "unsupported_media_type")


async def test_the_root_is_the_doors_for_its_calls_alone(labs: Client) -> None:
    for path in ("/tool", "/create/x", "/api/v1/tools", "/v1/tools", "/docs/call", "/api/v1/ping"):
        assert (await labs.http.get(path)).status_code == 404, path
    assert (await labs.http.get("/health")).json()["status"] == "ok"
    assert (await labs.http.get(f"{PREFIX}/tools")).json()["terminal_tool"]["name"] == "finish"


# --- streams -----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def over_a_socket(house: House) -> AsyncIterator[OrsClient]:
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        yield await begun(OrsClient(http, COLLECTION), max_turns=2)


async def test_a_call_whose_stream_broke_off_is_asked_for_again(house: House, labs: Client) -> None:
    async with over_a_socket(house) as client:
        house.matcher.close()
        stream = client.lines("reply", message=ASKS[0])
        seen = [await anext(stream), await anext(stream)]
        assert seen[0] == "event: task_id"
        call_id = seen[1].removeprefix("data: ")
        await house.matcher.somebody_waits()
        await stream.aclose()  # the client is gone while the turn is being played
        again = asyncio.create_task(client.call("reply", call_id, message=ASKS[0]))
        house.matcher.open()
        first = await again
        assert first["output"]["metadata"]["turn"] == 1
        # And once more, when it is long over.
        assert await client.call("reply", call_id, message=ASKS[0]) == first
        assert (await log_of(labs, first))["turn"] == 1
        with pytest.raises(StreamError, match="different request"):
            await client.call("reply", call_id, message=ASKS[1])
        with pytest.raises(StreamError, match="no such task_id"):
            await client.call("reply", "mine", message=ASKS[1])
        assert (await client.call("reply", message=ASKS[1]))["output"]["finished"] is True


async def test_a_call_that_takes_long_shows_signs_of_life(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ors_stream, "SIGN_OF_LIFE_S", 0.01)
    async with over_a_socket(house) as client:
        house.matcher.close()
        lines = []
        async for line in client.lines("reply", message=ASKS[0]):
            lines.append(line)
            if line.startswith(":"):
                house.matcher.open()
        assert any(line.startswith(":") for line in lines)
        assert outcome_of(list(events_of(lines)))["ok"] is True


async def test_a_turn_that_is_being_played_takes_a_place_of_the_lab(house: House) -> None:
    made = await house.keys().create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000, concurrency=1)
    house.end_development_mode()
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        client = await begun(OrsClient(http, COLLECTION, made.text), max_turns=2)
        house.matcher.close()
        stream = client.lines("reply", message=ASKS[0])
        lines = [await anext(stream)]
        await house.matcher.somebody_waits()
        assert_error(await client.get("tools"), 429, "too_many_at_once")
        house.matcher.open()
        lines += [line async for line in stream]
        assert outcome_of(list(events_of(lines)))["ok"] is True
        assert (await client.get("tools")).status_code == 200


@pytest.mark.parametrize("text", ["", "a" * 10_000, "a b " * 5_000, "a" + " " * 9_000 + "b", "a" * 4096 + "  b"])
def test_no_piece_of_a_text_begins_with_a_blank(text: str) -> None:
    """Clients would strip it."""
    data = json.dumps({"text": text})
    pieces = list(pieces_of(data))
    assert "".join(pieces) == data
    assert all(piece == piece.lstrip() for piece in pieces)


async def test_long_texts_arrive_whole(labs: Client, ors: OrsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ors_stream, "MOST_CHARACTERS", 8)
    called = await ors.call("reply", message=ASKS[0])
    assert ors.received[-1].count("event: chunk") > 10
    heard = (await log_of(labs, called))["messages"][-1]["content"]
    assert called["output"]["blocks"][0]["text"] == heard


async def test_other_collections_need_a_key_that_may_use_them(house: House) -> None:
    key = await house.key(collections=["front-desk"])
    house.end_development_mode()
    async with house.client() as client:
        narrow = OrsClient(client.http, "env", key)
        assert (await client.http.get("/list_environments", headers=narrow.headers())).json() == [
            "front-desk",
            "front-desk/lost-key",
        ]
        await narrow.open(split="train", index=0)
        assert (await narrow.call("reply", message="Hello."))["ok"] is True
        wide = OrsClient(client.http, COLLECTION, key)
        assert_error(await wide.get("tools"), 403, "forbidden")
        wide.sid = new_id(IdPrefix.SESSION)
        assert_error(await wide.post("create", {"task_spec": TASK}, own=False), 403, "forbidden")
        allowed = {"task_spec": {**OTHER, "seed": 1}}
        assert (await wide.post("create", allowed, own=False)).status_code == 200
