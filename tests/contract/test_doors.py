"""Doors for other stacks: each speaks its client's words, and one transcript has one reward through all of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect

from reward_server.auth.lab import Plan
from reward_server.auth.scopes import Scope
from reward_server.compat.target import without_special_tokens
from reward_server.errors import JudgeFailed
from tests.contract.documented import document
from tests.contract.house import OTHER, WHERE, Client, House, Json, agent, assert_error
from tests.contract.model_shop import COMPOSITE, Shop
from tests.contract.ors_client import OrsClient
from tests.contract.test_evaluate import BAD, GOOD
from tests.contract.test_mcp import session as mcp_session
from tests.contract.test_over_a_socket import listening
from tests.contract.test_secrecy import leaks

pytestmark = pytest.mark.one_house

NAME = f"{WHERE['collection_slug']}/{WHERE['scenario_slug']}"
BEFORE, LAST = GOOD[:5], GOOD[5]["content"]
PROMPT = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"


SAYS = {"user": "assistant", "assistant": "user"}
"""The role in an evaluation of who has this one in an episode."""
CALLS = [
    (method.upper(), path)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
    if operation["tags"] == ["doors"]
]


def openrlhf(*replies: str, label: Any = None, before: list[Json] = BEFORE) -> Json:
    label = {**WHERE, "messages": before} if label is None else label
    query = [f"<s>{PROMPT}{reply}<|im_end|></s>" for reply in replies]
    return {"query": query, "prompts": [PROMPT] * len(replies), "labels": [label] * len(replies)}


def slime(reply: str, before: list[Json] = BEFORE) -> Json:
    return {"prompt": before, "response": f"{reply}<|im_end|>", "label": NAME}


def rollout(reply: str, before: list[Json] = BEFORE, **fields: Any) -> Json:
    part = {"type": "output_text", "text": reply, "annotations": []}
    output = [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": [part]}]
    return {**WHERE, "responses_create_params": {"input": before}, "response": {"output": output}, **fields}


def judged(reply: str, before: list[Json] = BEFORE) -> Json:
    return {"model": f"judge:{NAME}", "messages": [*before, {"role": "assistant", "content": reply}]}


def pooled(reply: str, before: list[Json] = BEFORE) -> Json:
    told = judged(reply, before)
    return {"model": told["model"], "input": json.dumps(told["messages"]), "use_activation": False}


async def post(labs: Client, path: str, body: Json) -> Any:
    response = await labs.http.post(path, json=body)
    assert response.status_code == 200, response.text
    labs._document.check(response)
    return response.json()


ONE_NUMBER: dict[str, tuple[str, Callable[..., Json]]] = {
    "openrlhf": ("/api/v1/compat/openrlhf/get_reward", openrlhf),
    "slime": ("/api/v1/compat/slime?format=dict", slime),
    "nemo-gym": ("/api/v1/compat/nemo-gym/verify", rollout),
    "openai": ("/v1/chat/completions", judged),
    "vllm": ("/classify", pooled),
    "sglang": ("/v1/embeddings", pooled),
}
"""Doors that are shown a conversation: where, and how it is told there."""


async def asked(labs: Client, door: str, reply: str, before: list[Json] = BEFORE) -> Json:
    path, told = ONE_NUMBER[door]
    body: Json = await post(labs, path, told(reply, before=before))
    return body


def reward_of(door: str, body: Json) -> tuple[float, str | None]:
    if door == "openrlhf":
        assert body["scores"] == body["rewards"]
        return body["rewards"][0], None
    if door in ("vllm", "sglang"):
        return body["data"][-1]["probs" if door == "vllm" else "embedding"][-1], None
    if door == "openai":
        body = json.loads(body["choices"][0]["message"]["content"])
    return body["reward"], body["scoring_version"]


@pytest.mark.parametrize("door", ONE_NUMBER)
@pytest.mark.parametrize("reply", [LAST, BAD[-1]["content"], "Banana."])
async def test_a_transcript_has_one_reward_through_every_door(labs: Client, door: str, reply: str) -> None:
    messages = [*BEFORE, {"role": "assistant", "content": reply}]
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": messages})
    reward, version = reward_of(door, await asked(labs, door, reply))
    assert reward == alone["reward"]
    assert version in (None, alone["scoring_version"])


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_a_judge_that_failed_is_an_error_that_clients_try_again(house: House, labs: Client, door: str) -> None:
    house.failure = lambda request: JudgeFailed()
    with pytest.raises(AssertionError, match="judge_failed"):
        await asked(labs, door, LAST)


async def test_an_episode_played_at_any_door_has_the_number_that_every_door_gives_its_transcript(
    house: House, labs: Client
) -> None:
    """The same words to the same person, said over three doors, and what was said then shown to all others."""
    where, asks = {**WHERE, "seed": 7}, ("How did the flat tyre happen, if I may ask?", "How old is the tyre?")
    begun = await labs.ok("POST", "/episodes", {**WHERE, "config": {"seed": 7, "max_turns": 2}})
    for line in asks:
        turn = await labs.say(begun, agent(line))
    numbers = {"episodes": turn["reward"]}

    async with session(house) as send:
        await send("reset", **where, max_turns=2)
        steps = [await send("step", message=line) for line in asks]
    numbers["openenv, socket"] = steps[-1]["data"]["reward"]
    await labs.ok("POST", "/compat/openenv/reset", {**where, "max_turns": 2})
    for line in asks:
        step = await labs.ok("POST", "/compat/openenv/step", {"action": {"message": line}})
    numbers["openenv, HTTP"] = step["reward"]
    await labs.ok("POST", "/compat/nemo-gym/seed_session", where)
    for line in asks:
        await labs.ok("POST", "/compat/nemo-gym/reply", {"message": line})
    numbers["nemo-gym, episode"] = (await labs.ok("POST", "/compat/nemo-gym/verify", rollout("Goodbye.")))["reward"]
    labs.http.cookies.clear()
    client = OrsClient(labs.http, WHERE["collection_slug"])
    await client.open(task_spec={**where, "max_turns": 2})
    calls = [await client.call("reply", message=line) for line in asks]
    numbers["ors"] = calls[-1]["output"]["reward"]

    transcript = (await labs.read(begun))["messages"]
    said = [{"role": SAYS[each["role"]], "content": each["content"]} for each in transcript]
    last = max(i for i, each in enumerate(said) if each["role"] == "assistant")
    before, reply = said[:last], said[last]["content"]
    numbers["evaluate"] = (await labs.ok("POST", "/evaluate", {**WHERE, "messages": [*before, said[last]]}))["reward"]
    for door in ONE_NUMBER:
        numbers[door], _ = reward_of(door, await asked(labs, door, reply, before))
    assert set(numbers.values()) == {numbers["evaluate"]}, numbers
    assert numbers["evaluate"] > 0


async def used(labs: Client) -> tuple[int, int]:
    """The lab's turns and evaluations of today, as `GET /usage` counts them."""
    today = (await labs.ok("GET", "/usage"))["data"][0]
    return today["turns"], today["evaluations"]


@pytest.mark.parametrize("door", ["evaluate", *ONE_NUMBER])
async def test_what_a_door_scores_is_charged_once(labs: Client, door: str) -> None:
    turns, evaluations = await used(labs)
    if door == "evaluate":
        await labs.ok("POST", "/evaluate", {**WHERE, "messages": GOOD})
    else:
        await asked(labs, door, LAST)
    assert await used(labs) == (turns, evaluations + 1)


PLAYING = ["turns", "batch", "socket", "openenv", "nemo-gym", "openai", "ors", "mcp"]


@pytest.mark.parametrize("door", PLAYING)
async def test_what_a_door_plays_is_charged_once(house: House, labs: Client, door: str) -> None:
    turns, evaluations = await used(labs)
    await play_one_turn(house, labs, door)
    assert await used(labs) == (turns + 1, evaluations)


async def play_one_turn(house: House, labs: Client, door: str) -> None:
    """The same question at each door that plays episodes."""
    line = "How did the flat tyre happen, if I may ask?"
    match door:
        case "turns":
            await labs.say(await labs.create(), line)
        case "batch":
            item = {"episode_id": (await labs.create())["episode_id"], "messages": [agent(line)]}
            [result] = (await labs.ok("POST", "/batch/turns", {"items": [item]}))["results"]
            assert "reward" in result
        case "socket":
            began = await labs.create()
            async with listening(house) as port, connect(f"ws://127.0.0.1:{port}/api/v1/episodes/ws") as socket:
                turn = {"op": "turn", "ref": "a turn", "episode_id": began["episode_id"], "messages": [agent(line)]}
                assert "reward" in json.dumps(await exchanged(socket, turn))
        case "openenv":
            await labs.ok("POST", "/compat/openenv/reset", {**WHERE, "seed": 7})
            await labs.ok("POST", "/compat/openenv/step", {"action": {"message": line}})
        case "nemo-gym":
            await labs.ok("POST", "/compat/nemo-gym/seed_session", {**WHERE, "seed": 7})
            await labs.ok("POST", "/compat/nemo-gym/reply", {"message": line})
        case "openai":
            await post(labs, "/v1/chat/completions", said(line))
        case "ors":
            client = OrsClient(labs.http, WHERE["collection_slug"])
            await client.open(task_spec={**WHERE, "seed": 7})
            await client.call("reply", message=line)
        case _:
            async with mcp_session(house) as mcp:
                began = await mcp.ok("start_episode", **WHERE)
                await mcp.ok("play_turn", episode_id=began["episode_id"], text=line)


@pytest.mark.parametrize("door", ONE_NUMBER)
async def test_no_door_shows_a_rubric(labs: Client, door: str) -> None:
    assert leaks(json.dumps(await asked(labs, door, LAST))) == []


async def test_a_door_counts_against_the_limit_of_the_key(house: House) -> None:
    uncounted = []
    for method, path in CALLS:
        key = await house.key(plan=Plan.CUSTOM, rate_per_minute=1)
        house.end_development_mode()
        async with house.client(key) as labs:
            body = {} if method == "GET" else {"json": {}}
            answers = [await labs.http.request(method, path, **body) for _ in range(3)]
        # A new minute may begin between two of them.
        refused = [each for each in answers if each.status_code == 429]
        uncounted += [] if refused else [(method, path)]
        for each in refused:
            assert_error(each, 429, "rate_limited")
    assert uncounted == []


@pytest.mark.parametrize("path", [path for method, path in CALLS if method == "POST"])
async def test_a_door_reads_no_more_than_its_calls_do(labs: Client, path: str) -> None:
    content = b'{"prompt": "' + b"a" * 8_000_001 + b'"}'
    response = await labs.http.post(path, content=content, headers={"Content-Type": "application/json"})
    assert_error(response, 413, "body_too_large")


# --- OpenRLHF ---------------------------------------------------------------------------------------


async def test_openrlhf_gets_lists_of_the_length_it_sent(labs: Client) -> None:
    path = "/compat/openrlhf/get_reward"
    several = await labs.ok("POST", path, openrlhf(LAST, "Banana.", LAST))
    assert len(several["rewards"]) == 3
    assert several["rewards"][0] == several["rewards"][2] > several["rewards"][1]
    assert several["extra_logs"]
    assert all(len(values) == 3 for values in several["extra_logs"].values())
    # Releases before 0.11.2 send empty shards.
    assert (await labs.ok("POST", path, openrlhf()))["rewards"] == []


@pytest.mark.parametrize("label", [NAME, json.dumps(WHERE), WHERE])
async def test_a_label_names_the_scenario_in_three_ways(labs: Client, label: Any) -> None:
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": LAST}]})
    body = await labs.ok("POST", "/compat/openrlhf/get_reward", openrlhf(LAST, label=label))
    assert body["rewards"] == [alone["reward"]]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"labels": []}, ["labels"]),
        ({"labels": ["flat tyre"]}, ["labels", 0]),
        ({"labels": ["{"]}, ["labels", 0]),
        ({"labels": [{"scenario_slug": "flat-tyre"}]}, ["labels", 0, "collection_slug"]),
        ({"prompts": ["something else"]}, ["query", 0]),
    ],
)
async def test_openrlhf_is_told_what_is_wrong_where(labs: Client, change: Json, place: list[str]) -> None:
    response = await labs.call("POST", "/compat/openrlhf/get_reward", openrlhf(LAST) | change)
    assert assert_error(response, 400, "invalid_request")["errors"][0]["loc"] == place


async def test_one_of_several_that_cannot_be_scored_refuses_the_request(labs: Client) -> None:
    body = openrlhf(LAST, LAST)
    body["labels"][1] = "bike-shop/unknown"
    data = assert_error(await labs.call("POST", "/compat/openrlhf/get_reward", body), 400, "invalid_request")
    assert data["errors"][0]["loc"] == ["query", 1]


def test_special_tokens_are_taken_off_the_end_alone() -> None:
    assert without_special_tokens(" Is <b>it</b> old? <|im_end|>\n</s> ") == "Is <b>it</b> old?"
    assert without_special_tokens("Is 3 > 2 > 1 >") == "Is 3 > 2 > 1 >"
    assert without_special_tokens("<|im_end|>") == ""


@pytest.mark.timeout(20)
@pytest.mark.slow
def test_special_tokens_are_found_in_linear_time() -> None:
    """Texts of a door are as long as its body may be."""
    assert without_special_tokens(" " * 3_000_000 + "x") == "x"
    assert without_special_tokens("x" + " " * 3_000_000 + "<a>" * 1_000_000) == "x"
    assert without_special_tokens("a " * 1_000_000 + "x") == "a " * 1_000_000 + "x"


# --- slime ------------------------------------------------------------------------------------------


async def test_slime_gets_a_bare_number(labs: Client) -> None:
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": GOOD})
    assert await post(labs, "/api/v1/compat/slime", slime(LAST)) == alone["reward"]


# --- NeMo Gym ---------------------------------------------------------------------------------------


async def test_nemo_gym_plays_by_its_tool_and_gets_the_reward_of_the_episode(labs: Client) -> None:
    await labs.ok("POST", "/compat/nemo-gym/seed_session", {**WHERE, "seed": 7, "agent_ref": {"name": "any"}})
    said = [message["content"] for message in GOOD if message["role"] == "assistant"]
    for line in said:
        assert (await labs.ok("POST", "/compat/nemo-gym/reply", {"message": line}))["observation"]
    played = (await labs.ok("GET", "/episodes"))["data"][0]
    verified = await labs.ok("POST", "/compat/nemo-gym/verify", rollout("Goodbye."))
    assert verified["reward"] == played["rewards"][-1] > 0
    assert verified["response"] == rollout("Goodbye.")["response"]
    evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": played["messages"], "agent_role": "user"})
    assert verified["reward_components"] == evaluated["scores"] != {}


async def test_nemo_gym_gets_its_row_back_with_numbers_beside(labs: Client) -> None:
    sent = rollout(LAST, agent_ref={"name": "any"}, expected_answer="none")
    verified = await labs.ok("POST", "/compat/nemo-gym/verify", sent)
    assert {name: verified[name] for name in sent} == sent
    numbers = {name: verified[name] for name in verified if name.startswith("D")}
    evaluated = await labs.ok(
        "POST", "/evaluate", {**WHERE, "messages": [*BEFORE, {"role": "assistant", "content": LAST}]}
    )
    assert numbers == verified["reward_components"] == evaluated["scores"] != {}


async def test_a_rollout_is_scored_for_keys_that_may_score_and_an_episode_for_keys_that_may_train(house: House) -> None:
    train, score = [await house.key(scopes=[scope]) for scope in (Scope.TRAIN, Scope.SCORE)]
    house.end_development_mode()
    async with house.client(train) as trainer, house.client(score) as judge:
        path = "/compat/nemo-gym/verify"
        assert_error(await trainer.call("POST", path, rollout(LAST)), 403, "insufficient_scope")
        assert (await judge.ok("POST", path, rollout(LAST)))["reward"] > 0
        await trainer.ok("POST", "/compat/nemo-gym/seed_session", WHERE)
        await trainer.ok("POST", "/compat/nemo-gym/reply", {"message": LAST})
        assert "reward" in await trainer.ok("POST", path, rollout(LAST))


async def test_another_labs_session_is_not_found(house: House) -> None:
    async with house.client(await house.key("acme")) as owner, house.client(await house.key("rival")) as rival:
        house.end_development_mode()
        await owner.ok("POST", "/compat/nemo-gym/seed_session", WHERE)
        rival.http.cookies = owner.http.cookies
        assert_error(
            await rival.call("POST", "/compat/nemo-gym/reply", {"message": "Hello."}), 404, "episode_not_found"
        )


async def test_a_tool_call_without_a_session_is_404(labs: Client) -> None:
    assert_error(await labs.call("POST", "/compat/nemo-gym/reply", {"message": "Hello."}), 404, "episode_not_found")


# --- OpenEnv ----------------------------------------------------------------------------------------


@asynccontextmanager
async def session(house: House, key: str | None = None) -> AsyncIterator[Callable[..., Any]]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        listening(house) as port,
        connect(f"ws://127.0.0.1:{port}/api/v1/compat/openenv/ws", additional_headers=headers) as socket,
    ):

        async def send(kind: str, **data: Any) -> Json:
            return await exchanged(socket, {"type": kind, "data": data})

        yield send


async def exchanged(socket: ClientConnection, message: Any) -> Json:
    await socket.send(message if isinstance(message, str | bytes) else json.dumps(message))
    answer: Json = json.loads(await socket.recv())
    return answer


async def test_openenv_plays_an_episode_and_rewards_its_last_step_alone(house: House, labs: Client) -> None:
    async with session(house) as send:
        begun = await send("reset", **WHERE, seed=7, max_turns=3, episode_id="of the client")
        assert begun["type"] == "observation"
        assert begun["data"]["reward"] is None
        steps = [await send("step", message=line) for line in ("How did it happen?", "Where?", "I will mend it.")]
        state = await send("state")
    assert [step["data"]["done"] for step in steps] == [False, False, True]
    assert [step["data"]["reward"] is None for step in steps] == [True, True, False]
    played = (await labs.ok("GET", "/episodes"))["data"][0]
    assert steps[-1]["data"]["reward"] == played["rewards"][-1]
    assert state == {"type": "state", "data": {"episode_id": played["episode_id"], "step_count": 3}}


async def test_what_a_client_read_as_json_is_said_as_it_was_written(house: House, labs: Client) -> None:
    async with session(house) as send:
        await send("reset", **WHERE)
        for value in (42, True, ["a"]):
            assert (await send("step", message=value))["type"] == "observation"
    lines = [m["content"] for m in (await labs.ok("GET", "/episodes"))["data"][0]["messages"] if m["role"] == "user"]
    assert lines == ["42", "true", '["a"]']


async def test_openenv_names_what_is_wrong(house: House) -> None:
    async with session(house) as send:
        for kind, data, code in (
            ("step", {"message": "Hello."}, "VALIDATION_ERROR"),
            ("reset", {}, "VALIDATION_ERROR"),
            ("mcp", {}, "UNKNOWN_TYPE"),
            ("reset", {**WHERE, "scenario_slug": "unknown"}, "VALIDATION_ERROR"),
        ):
            answer = await send(kind, **data)
            assert (answer["type"], answer["data"]["code"]) == ("error", code), answer
        await send("reset", **WHERE)
        house.failure = lambda request: JudgeFailed()
        failed = await send("step", message="How did it happen?")
        assert (failed["data"]["code"], failed["data"]["labs_code"]) == ("EXECUTION_ERROR", "judge_failed")
        house.failure = lambda request: None
        assert (await send("step", message="How did it happen?"))["data"]["observation"]["message"]


async def test_what_is_no_json_is_said_to_be_none(house: House) -> None:
    async with (
        listening(house) as port,
        connect(f"ws://127.0.0.1:{port}/api/v1/compat/openenv/ws") as socket,
    ):
        for message, code in (("{", "INVALID_JSON"), ("[]", "UNKNOWN_TYPE"), ('{"type": "state"}', None)):
            assert (await exchanged(socket, message))["data"].get("code") == code


async def test_openenv_needs_the_key(house: House) -> None:
    key = await house.key()
    house.end_development_mode()
    async with session(house, key) as send:
        assert (await send("reset", **WHERE))["type"] == "observation"
    async with listening(house) as port:
        url = f"{port}/api/v1/compat/openenv/ws"
        async with connect(f"ws://labs:{key}@127.0.0.1:{url}") as socket:
            assert (await exchanged(socket, {"type": "state"}))["type"] == "state"
        with pytest.raises(Exception, match="401"):
            await connect(f"ws://127.0.0.1:{url}")


async def test_the_action_has_one_required_field_and_a_title_of_its_own(labs: Client) -> None:
    schema = await labs.ok("GET", "/compat/openenv/schema")
    assert schema["action"]["required"] == ["message"]
    assert schema["action"]["title"] not in ("Action", "CallToolAction", "ListToolsAction")


# --- OpenAI -----------------------------------------------------------------------------------------


def said(*lines: str, **fields: Any) -> Json:
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": line} for i, line in enumerate(lines)]
    return {"model": f"persona:{NAME}", "messages": messages, "temperature": 1.0, **fields}


def content(body: Json) -> str:
    text: str = body["choices"][0]["message"]["content"]
    return text


async def test_a_persona_is_a_model_that_remembers(labs: Client) -> None:
    first = await post(labs, "/v1/chat/completions", said("How did it happen?"))
    lines = ["How did it happen?", content(first), "When do you need it back?"]
    replayed = await post(labs, "/v1/chat/completions", said(*lines))
    continued = await post(
        labs, "/v1/chat/completions", said(*lines, metadata={"episode_id": first["labs"]["episode_id"]})
    )
    assert content(replayed) == content(continued) != content(first)
    assert replayed["labs"]["turn"] == continued["labs"]["turn"] == 2
    assert replayed["labs"]["episode_id"] != continued["labs"]["episode_id"] == first["labs"]["episode_id"]


async def test_a_persona_that_is_greeted_says_what_it_came_for(labs: Client) -> None:
    opening = (await labs.create(config={"seed": 5}))["initial_observation"]["content"]
    first = content(await post(labs, "/v1/chat/completions", said("Hi! How can I help?", seed=5)))
    assert first.startswith(opening)
    assert first != opening
    sent = said("Hi! How can I help?", first, "How did it happen?", seed=5)
    second = await post(labs, "/v1/chat/completions", sent)
    assert second["labs"]["turn"] == 2
    assert not content(second).startswith(opening)


async def test_a_history_that_the_persona_did_not_say_is_a_conflict(labs: Client) -> None:
    response = await labs.http.post("/v1/chat/completions", json=said("How did it happen?", "A moose.", "And?"))
    assert_error(response, 409, "history_mismatch")


async def test_a_chat_that_streams_says_the_same(labs: Client) -> None:
    plain = await post(labs, "/v1/chat/completions", said("How did it happen?"))
    response = await labs.http.post("/v1/chat/completions", json=said("How did it happen?", stream=True))
    *chunks, end = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    assert end == "[DONE]"
    deltas = [json.loads(chunk)["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(deltas) == content(plain)
    assert not [chunk for chunk in chunks if "usage" in chunk]


async def test_a_stream_says_the_usage_when_asked(labs: Client) -> None:
    sent = said("How did it happen?", stream=True, stream_options={"include_usage": True})
    response = await labs.http.post("/v1/chat/completions", json=sent)
    *lines, end = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    *chunks, last = [json.loads(line) for line in lines]
    assert end == "[DONE]"
    assert [chunk["usage"] for chunk in chunks] == [None] * 3
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 0)
    assert last["id"] == chunks[0]["id"]


async def test_the_openai_client_talks_to_a_persona(house: House) -> None:
    from openai import AsyncOpenAI

    key = await house.key()
    house.end_development_mode()
    async with listening(house) as port:
        client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0)
        models = [model.id async for model in client.models.list()]
        assert {f"persona:{NAME}", f"judge:{NAME}"} <= set(models)
        assert (await client.models.retrieve(f"judge:{NAME}")).owned_by == "labs"
        streamed = await client.chat.completions.create(
            model=f"persona:{NAME}",
            messages=[{"role": "user", "content": "How did it happen?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        assert [chunk.usage.total_tokens async for chunk in streamed if chunk.usage] == [0]
        found = await client.chat.completions.create(
            model=f"persona:{NAME}", messages=[{"role": "user", "content": "How did it happen?"}], temperature=0.5
        )
        assert found.choices[0].message.content
        await client.close()


async def test_a_key_sees_and_opens_its_own_collections(house: House) -> None:
    key = await house.key(collections=[OTHER["collection_slug"]])
    house.end_development_mode()
    async with house.client(key) as labs:
        names = [model["id"] for model in (await labs.http.get("/v1/models")).json()["data"]]
        assert names
        assert not [name for name in names if WHERE["collection_slug"] in name]
        assert (await labs.http.get(f"/v1/models/{names[0]}")).json()["id"] == names[0]
        assert_error(await labs.http.get(f"/v1/models/judge:{NAME}"), 403, "forbidden")
        assert_error(await labs.http.post("/v1/chat/completions", json=said("Hello.")), 403, "forbidden")
        for path, body in (("openrlhf/get_reward", openrlhf(LAST)), ("slime", slime(LAST))):
            assert_error(await labs.call("POST", f"/compat/{path}", body), 403, "forbidden")


async def test_another_labs_episode_is_no_model_to_talk_to(house: House) -> None:
    async with house.client(await house.key("acme")) as owner, house.client(await house.key("rival")) as rival:
        house.end_development_mode()
        begun = await post(owner, "/v1/chat/completions", said("How did it happen?"))
        more = said("And when?", metadata={"episode_id": begun["labs"]["episode_id"]})
        assert_error(await rival.http.post("/v1/chat/completions", json=more), 404, "episode_not_found")
        assert (await post(owner, "/v1/chat/completions", more))["labs"]["turn"] == 2


@pytest.mark.parametrize("model", ["gpt-4", "persona:", "persona:bike-shop", "judge:/x", "other:bike-shop/flat-tyre"])
async def test_an_unknown_model_is_told_how_models_are_named(labs: Client, model: str) -> None:
    response: httpx2.Response = await labs.http.post("/v1/chat/completions", json=said("Hello.") | {"model": model})
    assert assert_error(response, 400, "invalid_request")["errors"][0]["loc"] == ["model"]
    found = await labs.http.get(f"/v1/models/{model}")
    assert "GET /v1/models lists" in found.json()["message"]
    assert_error(found, 404, "not_found")


# --- vLLM, SGLang -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/classify", "/v1/embeddings"])
async def test_several_inputs_are_scored_in_their_order(labs: Client, path: str) -> None:
    texts = [pooled(reply)["input"] for reply in ("Banana.", LAST)]
    both = await post(labs, path, pooled(LAST) | {"input": texts})
    numbers = [(each.get("probs") or each["embedding"])[-1] for each in both["data"]]
    assert [each["index"] for each in both["data"]] == [0, 1]
    assert numbers[0] < numbers[1]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"model": NAME}, ["model"]),
        ({"model": f"persona:{NAME}"}, ["model"]),
        ({"input": "<|im_start|>user\nHello<|im_end|>"}, ["input", 0]),
        ({"input": '{"messages": []}'}, ["input", 0, "messages"]),
        ({"input": ["[]"]}, ["input", 0, "messages"]),
    ],
)
async def test_an_input_that_is_no_conversation_is_refused(labs: Client, change: Json, place: list[Any]) -> None:
    response = await labs.http.post("/classify", json=pooled(LAST) | change)
    assert assert_error(response, 400, "invalid_request")["errors"][0]["loc"] == place


@pytest.mark.slow
async def test_the_learned_model_that_serves_may_be_asked_alone(labs: Client, shop: Shop) -> None:
    learned = pooled(LAST) | {"model": f"reward_model:{NAME}"}
    refused = await labs.http.post("/classify", json=learned)
    assert refused.status_code == 400, refused.text
    await labs.ok("POST", f"/reward-models/{shop.add(0.25)}/activate", {})
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": GOOD, "reward_config": COMPOSITE})
    answered = await post(labs, "/classify", learned)
    assert answered["data"][-1]["probs"] == [alone["reward"]] == [0.25]
