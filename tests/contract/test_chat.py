"""Chats with agents and trained policies: whole and streamed, asked by OpenAI's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from benchmarks.scripted_provider import Fail, Mode, Say
from personas.reading.matcher import Matcher
from reward_server.agents import streaming as answers_in_parts
from reward_server.auth.scopes import EVERY, Scope
from reward_server.store.training_records import RunStatus
from reward_server.training import process, serving
from reward_server.training.folder import run_folder
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house
from tests.contract.streaming_endpoint import BREAK, DONE, event, said, streaming
from tests.contract.test_agents import add, policy
from tests.contract.test_over_a_socket import listening
from tests.store.test_training_runs import a_run

HELLO: Any = [{"role": "user", "content": "Hello."}]
WORDS = [said({"role": "assistant", "content": ""}), said({"content": "Good "}), said({"content": "morning."})]
USED = event({"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}})
END = [said({}, "stop"), USED, DONE]
CALL = {"index": 0, "id": "call_x", "type": "function", "function": {"name": "repair", "arguments": ""}}


@pytest.fixture
async def inner(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    async with running_house(data, matcher, library, private_addresses=True, request_deadline_s=30.0) as running:
        yield running


@pytest.fixture
async def lab(inner: House) -> AsyncIterator[Client]:
    async with inner.client() as client:
        yield client


async def events(lab: Client, path: str, **fields: Any) -> list[Json | str]:
    """The data of a stream."""
    response = await lab.call("POST", path, {"messages": HELLO, "stream": True, **fields})
    assert response.status_code == 200, response.text
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [each if each == "[DONE]" else json.loads(each) for each in data]


def text_of(found: list[Json | str]) -> str:
    choices = [each["choices"][0] for each in found if isinstance(each, dict) and each.get("choices")]
    return "".join(choice["delta"].get("content", "") for choice in choices)


# --- streams --------------------------------------------------------------------------------------


async def test_openais_client_gets_the_words_as_they_are_said(inner: House, lab: Client) -> None:
    go_on = asyncio.Event()
    async with streaming(*WORDS[:2], go_on, WORDS[2], *END) as endpoint, listening(inner) as port:
        agent = await add(lab, endpoint.url, temperature=0.5)
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model=agent["agent_id"],
                messages=HELLO,
                stream=True,
                stream_options={"include_usage": True},
                max_completion_tokens=64,
            )
            first = await anext(stream)  # while the endpoint has not said the rest
            assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "Good ")
            go_on.set()
            rest = [chunk async for chunk in stream]
    assert [chunk.choices[0].delta.content for chunk in rest if chunk.choices] == ["morning.", None]
    assert rest[-2].choices[0].finish_reason == "stop"
    assert rest[-1].usage is not None
    assert rest[-1].usage.total_tokens == 9
    [asked] = endpoint.asked
    assert (asked["temperature"], asked["max_tokens"], asked["stream"]) == (0.5, 64, True)


async def test_the_route_of_an_agent_streams_the_same_chunks(inner: House, lab: Client) -> None:
    async with streaming(*WORDS, *END) as endpoint, listening(inner) as port:
        agent = await add(lab, endpoint.url)
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/api/v1", api_key="none", max_retries=0) as client:
            stream = await client.post(
                f"/agents/{agent['agent_id']}/chat",
                body={"messages": HELLO, "stream": True, **WHERE},
                cast_to=ChatCompletionChunk,
                stream=True,
                stream_cls=AsyncStream[ChatCompletionChunk],
            )
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Good morning."
    assert endpoint.asked[0]["tools"]  # it is told what it is told in an evaluation
    assert endpoint.asked[0]["messages"][0]["role"] == "system"


async def test_who_hangs_up_ends_the_question_to_the_endpoint(inner: House, lab: Client) -> None:
    async with streaming(*WORDS, asyncio.Event()) as endpoint, listening(inner) as port:
        agent = await add(lab, endpoint.url)
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(model=agent["agent_id"], messages=HELLO, stream=True)
            await anext(stream)
            await stream.close()
            async with asyncio.timeout(15.0):  # the deadline of the endpoint would end it as well, later
                await endpoint.hung_up.wait()


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        ([BREAK], "the connection could not be made, or broke"),
        ([], "the connection could not be made, or broke"),
        ([event({"error": {"message": "quokka", "code": 500}})], "answered with a server error"),
        ([event("{quokka")], "no chat completion"),
        ([said({"content": "x" * 10_001})], "does not allow"),
        ([said({"content": "\x00"})], "does not allow"),
    ],
)
async def test_what_fails_behind_the_first_words_is_an_error_in_the_stream(
    inner: House, lab: Client, steps: list[Any], cause: str
) -> None:
    async with streaming(*WORDS, *steps) as endpoint, listening(inner) as port:
        agent = await add(lab, endpoint.url)
        found = await events(lab, f"/agents/{agent['agent_id']}/chat")
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(model=agent["agent_id"], messages=HELLO, stream=True)
            heard: list[str] = []
            with pytest.raises(openai.APIError, match=cause):
                await _hear(stream, heard)
    assert "".join(heard) == text_of(found) == "Good morning."
    assert "[DONE]" not in found
    last = found[-1]
    assert isinstance(last, dict)
    assert (last["error"]["code"], cause in last["error"]["message"]) == ("agent_failed", True)
    assert "quokka" not in str(found)


class _Clock:
    """Stands still for the words of an answer, and then is almost at the deadline."""

    def __init__(self, looks: int, late_s: float) -> None:
        self._looks, self._late_s = looks, late_s

    def monotonic(self) -> float:
        self._looks -= 1
        return 0.0 if self._looks >= 0 else self._late_s


async def test_an_endpoint_that_falls_silent_is_given_its_time_and_no_more(
    inner: House, lab: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_s = inner.settings.request_deadline_s - 0.1
    async with streaming(*WORDS, asyncio.Event()) as endpoint:
        agent = await add(lab, endpoint.url)
        # It is looked at to begin, to ask, and for each event.
        monkeypatch.setattr(answers_in_parts, "time", _Clock(2 + len(WORDS), late_s))
        found = await events(lab, f"/agents/{agent['agent_id']}/chat")
    assert text_of(found) == "Good morning."
    assert "did not finish its answer in time" in str(found[-1])


async def _hear(stream: AsyncStream[ChatCompletionChunk], heard: list[str]) -> None:
    async for chunk in stream:
        heard.append(chunk.choices[0].delta.content or "")


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        ([BREAK], "connection"),
        ([said({"role": "assistant"}), said({}, "stop"), DONE], "empty"),
        ([said({"refusal": "No."}), said({}, "stop"), DONE], "declined"),
        ([said({"content": 7})], "no chat completion"),
        ([said({"tool_calls": [{"index": 99, "function": {"name": "a"}}]})], "no chat completion"),
    ],
)
async def test_without_a_first_word_it_is_a_502(lab: Client, steps: list[Any], cause: str) -> None:
    async with streaming(*steps) as endpoint:
        agent = await add(lab, endpoint.url)
        response = await lab.call("POST", f"/agents/{agent['agent_id']}/chat", {"messages": HELLO, "stream": True})
    assert_error(response, 502, "agent_failed")
    assert cause in response.json()["message"]


async def test_tool_calls_are_streamed_and_must_be_whole(lab: Client) -> None:
    more = [said({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in ('{"value"', ": 1}")]
    async with streaming(said({"tool_calls": [CALL]}), *more, said({}, "tool_calls"), DONE) as endpoint:
        agent = await add(lab, endpoint.url)
        found = await events(lab, f"/agents/{agent['agent_id']}/chat")
    deltas = [each["choices"][0]["delta"] for each in found if isinstance(each, dict)]
    assert deltas[0] == {"role": "assistant", "tool_calls": [CALL]}
    assert "".join(delta["tool_calls"][0]["function"]["arguments"] for delta in deltas[:-1]) == '{"value": 1}'
    assert found[-2]["choices"][0]["finish_reason"] == "tool_calls"  # type: ignore[index]
    nameless = {**CALL, "function": {"name": "", "arguments": "{}"}}
    async with streaming(said({"tool_calls": [nameless]}), said({}, "tool_calls"), DONE) as endpoint:
        agent = await add(lab, endpoint.url)
        assert "does not allow" in str((await events(lab, f"/agents/{agent['agent_id']}/chat"))[-1])


async def test_an_endpoint_that_knows_no_streams_is_streamed_in_one_part(lab: Client) -> None:
    with policy("Good morning.") as server:
        agent = await add(lab, server.url)
        found = await events(lab, f"/agents/{agent['agent_id']}/chat", stream_options={"include_usage": True})
    assert text_of(found) == "Good morning."
    assert found[-1] == "[DONE]"
    assert found[-2]["usage"]["completion_tokens"] > 0  # type: ignore[index]
    with policy(Fail(Mode.RATE_LIMITED)) as server:
        agent = await add(lab, server.url)
        body = {"messages": HELLO, "stream": True}
        assert_error(await lab.call("POST", f"/agents/{agent['agent_id']}/chat", body), 502, "agent_failed")


async def test_a_lab_follows_so_many_streams_and_no_more(inner: House, lab: Client) -> None:
    async with streaming(*WORDS, *END) as endpoint:
        agent = await add(lab, endpoint.url)
        streams = inner.app.state.services.connections.streams
        streams._most = 0
        body = {"messages": HELLO, "stream": True}
        assert_error(await lab.call("POST", f"/agents/{agent['agent_id']}/chat", body), 429, "too_many_at_once")
        streams._most = 1
        for _ in range(2):  # each leaves its place
            await events(lab, f"/agents/{agent['agent_id']}/chat")


# --- POST /chat -----------------------------------------------------------------------------------


async def test_an_agent_answers_as_a_chat_completion(lab: Client) -> None:
    with policy(Say("Good morning.", stop="length")) as server:
        agent = await add(lab, server.url, temperature=0.2, max_tokens=9)
        asked = {"model": agent["agent_id"], "messages": HELLO}
        found = await lab.ok("POST", "/chat", {**asked, "temperature": 1.5, **WHERE})
    assert found["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "Good morning."},
        "finish_reason": "length",
    }
    assert (found["object"], found["model"]) == ("chat.completion", agent["agent_id"])
    assert found["usage"]["total_tokens"] > 0
    assert (server.asked[0].body["temperature"], server.asked[0].body["max_tokens"]) == (1.5, 9)
    assert server.asked[0].body["tools"]


async def test_a_model_has_to_be_one_of_the_labs(inner: House) -> None:
    looker = await inner.key("acme", scopes=[Scope.SCORE])
    async with inner.client(await inner.key("acme")) as owner, inner.client(await inner.key("rival")) as rival:
        inner.end_development_mode()
        agent = await add(owner, "http://127.0.0.1:9009")
        asked = {"model": agent["agent_id"], "messages": HELLO}
        assert_error(await rival.call("POST", "/chat", asked), 404, "agent_not_found")
        assert_error(await rival.http.post("/v1/chat/completions", json=asked), 404, "agent_not_found")
        unknown = await owner.call("POST", "/chat", {**asked, "model": "gpt-4"})
        [problem] = assert_error(unknown, 400, "invalid_request")["errors"]
        assert problem["loc"] == ["model"]
        run = {**asked, "model": a_run().training_run_id}
        assert_error(await owner.call("POST", "/chat", run), 404, "training_run_not_found")
        async with inner.client(looker) as scorer:
            for path in ("/api/v1/chat", "/v1/chat/completions"):
                assert_error(await scorer.http.post(path, json=asked), 403, "insufficient_scope")


async def a_finished_run(house: House, **changes: Any) -> str:
    row = replace(a_run(), created_at=house.clock.now(), **{"status": RunStatus.COMPLETE, **changes})
    async with house.store.transaction() as unit:
        await unit.training_runs.add(row)
    return row.training_run_id


async def test_a_run_without_a_policy_says_why(inner: House, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await inner.key("acme", scopes=list(EVERY))
    inner.end_development_mode()
    async with inner.client(key) as lab:
        running = {"model": await a_finished_run(inner, status=RunStatus.RUNNING), "messages": HELLO}
        assert "This run is running" in (await lab.call("POST", "/chat", running)).json()["message"]
        asked = {"model": await a_finished_run(inner), "messages": HELLO}
        assert_error(await lab.call("POST", "/chat", asked), 409, "conflict")
        monkeypatch.setattr(process, "missing", lambda: "torch")
        assert_error(await lab.call("POST", "/chat", asked), 403, "training_unavailable")


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_the_policy_of_a_finished_run_answers(
    data: Path, matcher: Matcher, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from learner.models import write
    from tests.learner.small import policy as small
    from tests.learner.small import tokenizer

    monkeypatch.setattr(serving, "LOAD_S", 150.0)  # a busy machine takes a minute to load torch
    async with running_house(data, matcher, library, request_deadline_s=150.0) as house, house.client() as lab:
        run_id = await a_finished_run(house, lab_id="development")
        folder = run_folder(house.settings.runs, "development", run_id)
        folder.out.mkdir(parents=True)
        served = house.app.state.services.served_runs
        asked = {"model": run_id, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}
        asked |= {"temperature": 0.0}  # sampled, five tokens of a model that learned nothing may be blank
        refused = await lab.call("POST", "/chat", asked)
        assert_error(refused, 409, "conflict")
        assert "run contains neither a run (checkpoints/)" in refused.json()["message"]
        assert str(data) not in refused.text
        assert served._policies == {}
        words = tokenizer()
        write(small(words, spread=3.0).model, words, folder.out)
        before = (await lab.ok("GET", "/usage"))["data"][0]["characters"]
        found = await lab.ok("POST", "/chat", asked)
        assert 0 < found["usage"]["completion_tokens"] <= 5
        assert (await lab.ok("GET", "/usage"))["data"][0]["characters"] > before  # this machine computes it
        streamed = await events(lab, "/chat", **{**asked, "stream": True})
        assert text_of(streamed)
        assert streamed[-1] == "[DONE]"
        [running] = served._policies.values()  # one process for both
        learner = running._learner
        assert not learner.is_over
    assert learner.is_over  # with the server
