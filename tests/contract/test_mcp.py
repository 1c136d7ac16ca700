"""MCP at /mcp, with the client of the official SDK over a socket."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import Scope
from reward_server.compat import mcp
from reward_server.errors import JudgeFailed
from scenarios.library import Library
from tests.contract.house import COLLECTION, SCENARIO, WHERE, Client, House, Json, agent, assert_error, running_house
from tests.contract.test_over_a_socket import listening
from tests.contract.test_secrecy import PROBES, leaks

ASKS = ("How did the flat tyre happen, if I may ask?", "How old is the tyre?")
ERAS = ("legacy", "auto")
"""The handshake of 2025 and the single messages of 2026."""
CONFIG = {"seed": 7, "persona_slug": "plainspoken", "max_turns": 2}
SCORED = {**WHERE, "messages": [{"role": "assistant", "content": ASKS[0]}]}
TOOLS = {"list_scenarios", "get_scenario", "start_episode", "play_turn", "end_episode", "evaluate"}


class Session:
    """A client, which keeps all that it was told."""

    def __init__(self, client: McpClient) -> None:
        self.client = client
        self.results: list[CallToolResult] = []

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
        self.results.append(result)
        return result

    async def ok(self, tool: str, **arguments: Any) -> Json:
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.structured_content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> Json:
        """The data of an error of the API."""
        result = await self.call(tool, **arguments)
        assert result.is_error
        assert isinstance(result.structured_content, dict)
        assert set(result.structured_content) == {"message", "data"}
        data: Json = result.structured_content["data"]
        return data

    @property
    def received(self) -> str:
        return "".join(result.model_dump_json() for result in self.results)


@asynccontextmanager
async def connected(url: str, key: str | None = None, mode: str = "auto") -> AsyncIterator[Session]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        McpClient(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield Session(client)


@asynccontextmanager
async def session(house: House, key: str | None = None, mode: str = "auto") -> AsyncIterator[Session]:
    async with listening(house) as port, connected(f"http://127.0.0.1:{port}/mcp", key, mode) as found:
        yield found


@pytest.mark.parametrize("mode", ERAS)
async def test_an_episode_is_what_it_is_over_http(house: House, labs: Client, mode: str) -> None:
    episode = await labs.create(config=CONFIG)
    turns = [await labs.say(episode, ask) for ask in ASKS]
    async with session(house, mode=mode) as mcp_session:
        assert {tool.name for tool in (await mcp_session.client.list_tools()).tools} == TOOLS
        begun = await mcp_session.ok("start_episode", **WHERE, config=CONFIG)
        assert begun["initial_observation"] == episode["initial_observation"]
        for ask, turn in zip(ASKS, turns, strict=True):
            played = await mcp_session.ok("play_turn", episode_id=begun["episode_id"], text=ask)
            assert {**played, "request_id": ""} == {**turn, "request_id": ""}
    assert played["episode_complete"]
    log = await labs.log(begun)
    evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": log, "agent_role": log[1]["role"]})
    assert evaluated["reward"] == played["reward"] > 0


async def test_an_evaluation_is_what_it_is_over_http(house: House, labs: Client) -> None:
    over_http = await labs.ok("POST", "/evaluate", SCORED)
    async with session(house) as played:
        over_mcp = await played.ok("evaluate", **SCORED)
    told = ("reward", "scores", "scoring_version")
    assert [over_mcp[name] for name in told] == [over_http[name] for name in told]
    stored = await labs.ok("GET", f"/evaluations/{over_mcp['evaluation_id']}")
    assert stored["reward"] == over_mcp["reward"]
    assert set(over_mcp) == set(over_http)


async def test_scenarios_and_their_tools_are_those_of_the_catalog(house: House, labs: Client) -> None:
    async with session(house) as played:
        everything = await played.ok("list_scenarios")
        one = await played.ok("list_scenarios", collection_slug=COLLECTION)
        scenario = await played.ok("get_scenario", **WHERE)
    catalog = await labs.ok("GET", "/catalog")
    assert everything["collections"] == catalog["collections"]
    assert [each["slug"] for each in one["collections"]] == [COLLECTION]
    over_http = await labs.ok("GET", f"/collections/{COLLECTION}/scenarios/{SCENARIO}")
    assert {**scenario, "request_id": ""} == {**over_http, "request_id": ""}
    assert scenario["tool_definitions"]


async def test_a_tool_call_alone_is_a_turn(house: House, labs: Client) -> None:
    call = {"name": "repair", "input": {"value": 1}}
    over_http = await labs.say(await labs.create(), agent("", call))
    async with session(house) as played:
        episode = await played.ok("start_episode", **WHERE, config={"seed": 7, "persona_slug": "plainspoken"})
        turn = await played.ok("play_turn", episode_id=episode["episode_id"], tool_calls=[call])
        ended = await played.ok("end_episode", episode_id=episode["episode_id"])
    assert {**turn, "request_id": ""} == {**over_http, "request_id": ""}
    assert (ended["status"], ended["turn"]) == ("complete", 1)


async def test_a_wrong_key_is_refused_before_anything_is_said(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        for headers in ({}, {"Authorization": "Bearer lab_wrong"}):
            refused = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
            assert_error(refused, 401, "unauthenticated")
            assert refused.headers["www-authenticate"] == "Bearer"
        with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
            async with connected(f"http://127.0.0.1:{port}/mcp", "lab_wrong") as played:
                await played.ok("list_scenarios")


async def test_another_labs_episode_is_not_found(house: House) -> None:
    ours, theirs = await house.key("acme"), await house.key("rival")
    house.end_development_mode()
    async with listening(house) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with connected(url, ours) as one, connected(url, theirs) as other:
            episode = (await one.ok("start_episode", **WHERE))["episode_id"]
            turn = await other.refused("play_turn", episode_id=episode, text=ASKS[0])
            end = await other.refused("end_episode", episode_id=episode)
            assert (turn["code"], end["code"]) == ("episode_not_found", "episode_not_found")
            await one.ok("play_turn", episode_id=episode, text=ASKS[0])


async def test_a_key_sees_and_calls_the_tools_of_its_scopes(house: House) -> None:
    key = await house.key(scopes=[Scope.SCORE], collections=["front-desk"])
    house.end_development_mode()
    async with session(house, key) as played:
        assert {tool.name for tool in (await played.client.list_tools()).tools} == {
            "list_scenarios",
            "get_scenario",
            "evaluate",
        }
        assert (await played.refused("start_episode", **WHERE))["code"] == "insufficient_scope"
        assert (await played.refused("evaluate", **SCORED))["code"] == "forbidden"
        assert [each["slug"] for each in (await played.ok("list_scenarios"))["collections"]] == ["front-desk"]


async def test_what_may_be_sent_again_is_done_once(house: House, labs: Client) -> None:
    async with session(house) as played:
        wanted = {**WHERE, "config": CONFIG, "idempotency_key": "a"}
        first, again = [await played.ok("start_episode", **wanted) for _ in range(2)]
        assert first["episode_id"] == again["episode_id"]
        turn = {"episode_id": first["episode_id"], "text": ASKS[0], "idempotency_key": "b"}
        turns = [await played.ok("play_turn", **turn) for _ in range(2)]
        assert [each["turn"] for each in turns] == [1, 1]
        scored = [await played.ok("evaluate", **SCORED, idempotency_key="c") for _ in range(2)]
        assert scored[0]["evaluation_id"] == scored[1]["evaluation_id"]
        over_http = await labs.ok("POST", "/evaluate", SCORED, headers={"Idempotency-Key": "c"})
        assert over_http["evaluation_id"] == scored[0]["evaluation_id"]
        other = {**SCORED, "messages": [{"role": "assistant", "content": "Hello."}], "idempotency_key": "c"}
        assert (await played.refused("evaluate", **other))["code"] == "idempotency_mismatch"
        refused = await played.refused("evaluate", **SCORED, idempotency_key="")
        assert (refused["code"], refused["errors"][0]["loc"]) == ("invalid_request", ["idempotency_key"])


async def test_a_failed_judge_is_an_error_that_may_pass(house: House) -> None:
    async with session(house) as played:
        episode = await played.ok("start_episode", **WHERE, config=CONFIG)
        house.failure = lambda request: JudgeFailed()
        failed = await played.refused("play_turn", episode_id=episode["episode_id"], text=ASKS[0])
        assert failed["code"] == "judge_failed"
        assert "reward" not in played.results[-1].model_dump_json()
        house.failure = lambda request: None
        assert (await played.ok("play_turn", episode_id=episode["episode_id"], text=ASKS[0]))["turn"] == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "place"),
    [
        ("play_turn", {"text": "Hello"}, ["episode_id"]),
        ("play_turn", {"episode_id": "ep_1", "text": 5}, ["text"]),
        ("play_turn", {"episode_id": "ep_1", "message": "Hello"}, ["message"]),
        ("evaluate", {**WHERE, "messages": []}, ["messages"]),
        ("start_episode", {**WHERE, "config": {"seed": "seven"}}, ["config", "seed"]),
    ],
)
async def test_bad_arguments_are_named(house: House, tool: str, arguments: Json, place: list[str]) -> None:
    async with session(house) as played:
        refused = await played.refused(tool, **arguments)
        assert (refused["code"], refused["errors"][0]["loc"]) == ("invalid_request", place)


async def test_an_unknown_tool_is_told_which_there_are(house: House) -> None:
    async with session(house) as played:
        with pytest.raises(MCPError, match="list_scenarios, get_scenario"):
            await played.client.call_tool("reveal", {})


async def test_what_is_no_message_is_refused_in_the_words_of_the_api(labs: Client) -> None:
    quoted = "quokka" * 3
    for body, status, code in (
        (b"", 400, "invalid_request"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": NaN}', 400, "invalid_request"),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', 400, "invalid_request"),
        (json.dumps({"jsonrpc": "1.0", "id": quoted, "method": [quoted]}).encode(), 400, "invalid_request"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "a\\u0000"}', 400, "invalid_request"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"a" * 4_000_001 + b'"}', 413, "body_too_large"),
        (b'{"jsonrpc": "2.0", "id": 1, "params": [' + b"[]," * 50_000 + b"1]}", 400, "invalid_request"),
    ):
        refused = await labs.http.post("/mcp", content=body, headers={"Content-Type": "application/json"})
        assert_error(refused, status, code)
        assert quoted not in refused.text
    for method in ("GET", "DELETE"):
        assert_error(await labs.http.request(method, "/mcp"), 405, "method_not_allowed")
    assert_error(await labs.http.post("/mcp", content=b"{}"), 415, "unsupported_media_type")


async def test_every_message_counts_as_a_request(house: House) -> None:
    key = await house.key(rate_per_minute=3)
    house.end_development_mode()
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    async with house.client(key) as labs:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answers = [await labs.http.post("/mcp", json=ping, headers=headers) for _ in range(4)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    assert answers[0].json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert answers[0].headers["x-ratelimit-limit"] == "3"
    assert int(answers[3].headers["retry-after"]) > 0


async def test_nothing_private_is_told(house: House) -> None:
    async with session(house) as played:
        await played.ok("list_scenarios")
        await played.ok("get_scenario", **WHERE)
        episode = (await played.ok("start_episode", **WHERE, config={"seed": 1}))["episode_id"]
        for probe in PROBES:
            await played.call("play_turn", episode_id=episode, text=probe)
        await played.call("play_turn", episode_id=episode, text="x", reward_config={"quality_weights": {"unknown": 1}})
        await played.call("end_episode", episode_id=episode)
        messages = [{"role": "assistant", "content": probe} for probe in PROBES]
        await played.ok("evaluate", **WHERE, messages=messages)
        house.matcher.broken = True
        with pytest.raises(MCPError):
            await played.call("evaluate", **WHERE, messages=[{"role": "assistant", "content": "Nobody said this?"}])
        told = played.received + (await played.client.list_tools()).model_dump_json()
    assert leaks(told) == []
    assert leaks(house.logs.getvalue()) == []
    assert all(probe not in house.logs.getvalue() for probe in PROBES if probe)


async def test_the_prefix_of_a_proxy_is_part_of_the_address(data: Path, matcher: Matcher, library: Library) -> None:
    async with (
        running_house(data, matcher, library, path_prefix="/labs") as house,
        listening(house) as port,
        connected(f"http://127.0.0.1:{port}/labs/mcp") as played,
    ):
        assert (await played.ok("list_scenarios"))["collections"]


async def test_the_server_keeps_its_own_way_to_stop(house: House) -> None:
    mcp._loaded.cache_clear()
    before = uvicorn.Server.handle_exit
    async with session(house) as played:
        await played.ok("list_scenarios")
    assert uvicorn.Server.handle_exit is before


async def test_without_the_sdk_a_line_says_what_to_install(labs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    mcp._loaded.cache_clear()
    monkeypatch.delitem(sys.modules, "reward_server.compat.mcp_exchange", raising=False)
    monkeypatch.delattr("reward_server.compat.mcp_exchange", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.context", None)
    refused = await labs.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert_error(refused, 404, "not_found")
    assert "pip install 'labs-reward-server[mcp]'" in refused.json()["message"]


async def test_a_client_that_leaves_ends_its_evaluation(house: House) -> None:
    house.matcher.close()
    call = {"name": "evaluate", "arguments": SCORED}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        asking = asyncio.create_task(http.post("/mcp", json=message, headers={"Accept": "application/json"}))
        await house.matcher.somebody_waits()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(10):
            while house.app.state.in_work._all:  # noqa: ASYNC110 (nothing tells of it)
                await asyncio.sleep(0.02)
        house.matcher.open()
    assert '"status": 499' in house.logs.getvalue()
