"""What may be in a body: sizes, kinds, characters, numbers. Everything else is 400, never 422 or 5xx."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reward_server.api.body import CONVERSATION
from reward_server.auth.lab import Lab, Plan
from tests.contract.house import WHERE, Client, House, Json, agent, assert_error

pytestmark = pytest.mark.one_house
MOST_BYTES = int(CONVERSATION.megabytes * 1_000_000)
EVALUATION = {**WHERE, "messages": [{"role": "assistant", "content": "How did it happen?"}]}
JSON = {"Content-Type": "application/json"}


async def post(labs: Client, body: bytes | str, path: str = "/episodes", **headers: str) -> tuple[int, str, Json]:
    response = await labs.call("POST", path, content=body, headers=JSON | headers)
    data = response.json().get("data", {})
    return response.status_code, data.get("code", ""), data


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nope",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b"{}",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"collection_slug": "bike-shop"}',
        b'{"collection_slug": NaN, "scenario_slug": "flat-tyre"}',
        b"{'collection_slug': 'bike-shop'}",
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        b"-",
        b"{} {}",
        b'{"collection_slug": "bike-shop", "scenario_slug": "flat-tyre", "unknown": 1}',
        b'{"collection_slug": 1, "scenario_slug": "flat-tyre"}',
        b'{"collection_slug": "bike-shop", "scenario_slug": null}',
        b'{"collection_slug": "bike-shop", "scenario_slug": "flat-tyre", "score_turns": "true"}',
        b'{"collection_slug": "bike-shop", "scenario_slug": "flat-tyre", "config": []}',
    ],
)
async def test_what_is_no_request_is_400(labs: Client, body: bytes) -> None:
    status, code, _ = await post(labs, body)
    assert (status, code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9223372036854775808", "1" * 400, "0x10", "01", "+1"]
)
@pytest.mark.parametrize("place", ["seed", "metadata", "weight", "input", "deep"])
async def test_numbers_out_of_range_are_400_wherever_they_stand(labs: Client, value: str, place: str) -> None:
    where = '"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"'
    bodies = {
        "seed": ("/episodes", f'{{{where}, "config": {{"seed": {value}}}}}'),
        "metadata": ("/episodes", f'{{{where}, "config": {{"metadata": {{"a": {value}}}}}}}'),
        "deep": ("/episodes", f'{{{where}, "config": {{"metadata": {{"a": [[{{"b": {value}}}]]}}}}}}'),
        "weight": (
            "/evaluate",
            f'{{{where}, "messages": [{{"role": "assistant", "content": "x"}}],'
            f' "reward_config": {{"quality_weights": {{"discovery": {value}}}}}}}',
        ),
        "input": (
            "/evaluate",
            f'{{{where}, "messages": [{{"role": "assistant", "content": "x",'
            f' "tool_calls": [{{"name": "repair", "input": {{"value": {value}}}}}]}}]}}',
        ),
    }
    path, body = bodies[place]
    if place == "weight" and value in ("9223372036854775808", "1" * 400):
        value = "a large weight is a weight"
    status, code, _ = await post(labs, body, path)
    if value == "a large weight is a weight":
        assert status in (200, 400)
    else:
        assert (status, code) in ((400, "invalid_request"), (400, "invalid_reward_config"))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "[NaN]", '{"a": -Infinity}'])
@pytest.mark.parametrize("door", ["/evaluate", "/batch/evaluate", "/compare", "/rank", "turns"])
async def test_what_is_no_json_is_400_also_in_keys_that_are_ignored(labs: Client, value: str, door: str) -> None:
    where = '"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"'
    messages = f'"messages": [{{"role": "assistant", "content": "x", "name": {value}}}]'
    bodies = {
        "/evaluate": f"{{{where}, {messages}}}",
        "/batch/evaluate": f'{{"items": [{{"id": "a", {where}, {messages}}}]}}',
        "/compare": f'{{{where}, "response_a": {{{messages}}}, "response_b": {{{messages}}}}}',
        "/rank": f'{{{where}, "responses": [{{"id": "a", {messages}}}, {{"id": "b", {messages}}}]}}',
        "turns": f"{{{messages}}}",
    }
    path = f"/episodes/{(await labs.create())['episode_id']}/turns" if door == "turns" else door
    assert (await post(labs, bodies[door], path))[:2] == (400, "invalid_request")
    assert (await post(labs, bodies[door].replace(value, '"Infinity and NaN"'), path))[0] == 200


@pytest.mark.parametrize("escape", ["\\u0000", "a\\u0000b", "\\ud800", "\\udfff", "\\ud800x", "\\udc00\\ud800"])
@pytest.mark.parametrize("place", ["content", "slug", "key", "metadata", "tool", "batch"])
async def test_nul_and_lone_surrogates_are_400(labs: Client, escape: str, place: str) -> None:
    message = f'{{"role": "assistant", "content": "{escape if place == "content" else "Hi"}"}}'
    tool = f'{{"role": "assistant", "content": "", "tool_calls": [{{"name": "x", "input": {{"v": "{escape}"}}}}]}}'
    where = '"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"'
    bodies = {
        "content": ("/evaluate", f'{{{where}, "messages": [{message}]}}'),
        "slug": ("/evaluate", f'{{"collection_slug": "{escape}", "scenario_slug": "s", "messages": [{message}]}}'),
        "key": ("/evaluate", f'{{{where}, "messages": [{message}], "{escape}": 1}}'),
        "metadata": ("/episodes", f'{{{where}, "config": {{"metadata": {{"{escape}": ["{escape}"]}}}}}}'),
        "tool": ("/evaluate", f'{{{where}, "messages": [{tool}]}}'),
        "batch": ("/batch/evaluate", f'{{"items": [{{"id": "{escape}", {where}, "messages": [{message}]}}]}}'),
    }
    path, body = bodies[place]
    status, code, _ = await post(labs, body, path)
    assert (status, code) == (400, "invalid_request")


@pytest.mark.parametrize("text", ["😀", "a\u200bb", "\u202e", "日本語", "é", "\\u0000 written out", "\x01", "\ufeff"])
async def test_all_other_characters_are_text(labs: Client, text: str) -> None:
    episode = await labs.create(config={"metadata": {"note": text}})
    await labs.say(episode, text)
    body = await labs.read(episode)
    assert body["messages"][1]["content"] == text
    assert body["metadata"] == {"note": text}


@pytest.mark.parametrize(
    ("content", "status"), [("x" * 10_000, 200), ("x" * 10_001, 400), ("😀" * 10_000, 200), ("😀" * 10_001, 400)]
)
async def test_content_is_counted_in_characters(labs: Client, episode: Json, content: str, status: int) -> None:
    assert (await labs.turn(episode, content)).status_code == status
    body = {**WHERE, "messages": [{"role": "assistant", "content": content}]}
    assert (await labs.call("POST", "/evaluate", body)).status_code == status


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "*/*"]
)
async def test_another_content_type_is_415(labs: Client, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    content = json.dumps(EVALUATION).encode()
    response = await labs.http.post("/api/v1/evaluate", content=content, headers=headers)
    assert_error(response, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.lab+json"]
)
async def test_json_content_types_are_accepted(labs: Client, kind: str) -> None:
    response = await labs.call(
        "POST", "/evaluate", content=json.dumps(EVALUATION).encode(), headers={"Content-Type": kind}
    )
    assert response.status_code == 200


async def test_a_compressed_body_is_400(labs: Client) -> None:
    status, code, _ = await post(labs, b"\x1f\x8b", **{"Content-Encoding": "gzip"})
    assert (status, code) == (400, "invalid_request")


async def test_a_body_over_the_limit_is_413(labs: Client) -> None:
    too_much = MOST_BYTES + 1
    response = await labs.call("POST", "/evaluate", content=b" " * too_much, headers=JSON)
    assert_error(response, 413, "body_too_large")


async def test_a_chunked_body_over_the_limit_is_413(labs: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MOST_BYTES // 1_000_000 + 2):
            yield b" " * 1_000_000

    response = await labs.call("POST", "/evaluate", content=chunks(), headers=JSON)
    assert_error(response, 413, "body_too_large")


async def test_the_key_is_looked_at_before_the_body(house: House) -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(3):
            read += 1
            yield b"no JSON"

    await house.key()
    house.end_development_mode()
    async with house.client("lab_unknown") as stranger:
        response = await stranger.call("POST", "/evaluate", content=chunks(), headers=JSON)
    assert_error(response, 401, "unauthenticated")
    assert read == 0


async def test_errors_name_the_place_and_never_repeat_the_input(labs: Client) -> None:
    body = {**WHERE, "messages": [{"role": "assistant", "content": ["quokka-input"]}], "agent_role": "quokka-role"}
    response = await labs.call("POST", "/evaluate", body)
    data = assert_error(response, 400, "invalid_request")
    assert {tuple(problem["loc"]) for problem in data["errors"]} == {("messages", 0, "content"), ("agent_role",)}
    assert "quokka" not in response.text


async def test_a_very_wrong_body_gets_a_bounded_answer(labs: Client) -> None:
    body = {**WHERE, "messages": [{"role": "assistant"}] * 400, **{f"x{i}": 1 for i in range(500)}}
    response = await labs.call("POST", "/evaluate", body)
    assert len(assert_error(response, 400, "invalid_request")["errors"]) <= 20


@pytest.mark.parametrize("role", ["agent", "", "Assistant", "bot", "x" * 33])
@pytest.mark.parametrize("door", ["turn", "evaluate"])
async def test_an_unknown_role_is_400(labs: Client, episode: Json, role: str, door: str) -> None:
    message = {"role": role, "content": "Hi"}
    if door == "turn":
        response = await labs.turn(episode, message)
    else:
        response = await labs.call("POST", "/evaluate", {**WHERE, "messages": [message]})
    assert_error(response, 400, "invalid_request")


async def test_keys_of_other_chat_formats_are_ignored(labs: Client, episode: Json) -> None:
    message = {**agent("How did it happen?"), "name": "policy", "refusal": None, "audio": {"id": 1}}
    assert (await labs.say(episode, message))["turn"] == 1
    assert set((await labs.log(episode))[1]) == {"role", "content"}


@pytest.mark.parametrize("messages", [[], None, "text", [7], [[]], [{}], [{"role": "user"}], [{"content": "Hi"}]])
async def test_messages_must_be_messages(labs: Client, episode: Json, messages: object) -> None:
    path = f"/episodes/{episode['episode_id']}/turns"
    assert_error(await labs.call("POST", path, {"messages": messages}), 400, "invalid_request")
    assert_error(await labs.call("POST", "/evaluate", {**WHERE, "messages": messages}), 400, "invalid_request")


async def test_an_empty_message_is_a_message(labs: Client, episode: Json) -> None:
    turn = await labs.say(episode, "")
    assert turn["observation"]["content"]
    assert turn["reward"] <= 0.05


async def test_unknown_fields_without_end_are_told_of_a_few(labs: Client) -> None:
    body = {**EVALUATION, **{f"x{i}": 0 for i in range(20_000)}}
    response = await labs.call("POST", "/evaluate", body)
    assert len(assert_error(response, 400, "invalid_request")["errors"]) == 20


async def test_text_with_many_commas_is_no_body_with_many_values(labs: Client) -> None:
    message = {"role": "assistant", "content": '",[{\\' * 2_000}
    body = {**WHERE, "messages": [message, {"role": "user", "content": "Yes."}] * 3}
    assert (await labs.call("POST", "/evaluate", body)).status_code == 200


@pytest.mark.parametrize(
    "values",
    [b"0," * 50_000 + b"0", b'"a\\\\",' * 50_000 + b"0", b'{"":""},' * 50_000 + b"0", b'"",' * 50_000 + b'"' * 200_000],
)
async def test_more_values_than_any_request_has_are_400(labs: Client, values: bytes) -> None:
    response = await labs.call("POST", "/evaluate", content=b'{"messages": [' + values + b"]}", headers=JSON)
    assert_error(response, 400, "invalid_request")
    assert response.json()["message"] == "The body contains too many values."


@pytest.mark.parametrize("quotes", [1, 1_000, 1_000_000])
async def test_text_that_nothing_ends_is_text_however_many_quotes_are_in_it(labs: Client, quotes: int) -> None:
    body = b'{"messages": "' + b'\\"' * quotes + b"," * 50_000
    response = await labs.call("POST", "/evaluate", content=body, headers=JSON)
    [problem] = assert_error(response, 400, "invalid_request")["errors"]
    assert "JSON" in problem["msg"]


async def test_a_conversation_that_is_too_long_is_413_and_in_a_batch_an_item(labs: Client) -> None:
    long = [{"role": "assistant", "content": "x" * 10_000}, {"role": "user", "content": "y"}] * 26
    assert_error(await labs.call("POST", "/evaluate", {**WHERE, "messages": long}), 413, "too_much_text")
    items = [{**WHERE, "id": "long", "messages": long}, {**EVALUATION, "id": "short"}]
    results = (await labs.ok("POST", "/batch/evaluate", {"items": items}))["results"]
    assert [each["status"] for each in results] == ["error", "success"]
    assert results[0]["code"] == "too_much_text"


async def test_characters_that_become_many_are_counted_as_they_are_read(labs: Client) -> None:
    async def evaluate(each: int, turns: int) -> Any:
        said = [{"role": "assistant", "content": "\ufdfa" * each}, {"role": "user", "content": "y"}]
        return await labs.call("POST", "/evaluate", {**WHERE, "messages": said * turns})

    [problem] = assert_error(await evaluate(10_000, 1), 400, "invalid_request")["errors"]
    assert problem["msg"] == (
        "Must have at most 20,000 characters in Unicode's form NFKC, this has 180,000: "
        "use fewer ligatures and signs, or less text."
    )
    assert (await evaluate(1_000, 2)).status_code == 200
    assert_error(await evaluate(1_000, 14), 413, "too_much_text")


async def test_a_plan_bounds_what_is_read_in_a_minute(house: House) -> None:
    key = await house.key(plan=Plan.STANDARD, rate_per_minute=None)
    house.end_development_mode()
    async with house.client(key) as client:
        assert (await client.call("POST", "/evaluate", EVALUATION)).status_code == 200
        await house.app.state.services.compute.charge(Lab(lab_id="acme", key_id="k", per_minute=60), 2_000_000)
        refused = await client.call("POST", "/evaluate", EVALUATION)
        assert_error(refused, 429, "compute_exhausted")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await client.call("GET", "/catalog")).status_code == 200
