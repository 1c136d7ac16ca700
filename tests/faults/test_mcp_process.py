"""MCP of a real server process: the numbers of the API by the SDK's client, and what SIGTERM does to calls in work."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.faults.server_process import WHERE, server_process
from tests.faults.test_sigterm import in_work, stored

pytestmark = pytest.mark.slow

Json = dict[str, Any]
ASKS = ("How did the flat tyre happen, if I may ask?", "How old is the tyre?")
IN_FLIGHT = 30


async def called(client: Client, tool: str, **arguments: Any) -> Json:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def test_the_reward_over_mcp_is_that_of_evaluate(tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",)) as server:
        headers = {"Authorization": f"Bearer {server.keys['acme']}"}
        async with (
            server.client("acme") as http,
            httpx2.AsyncClient(headers=headers, timeout=60) as plain,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=plain)) as labs,
        ):
            episode = await called(labs, "start_episode", **WHERE, config={"seed": 7, "max_turns": len(ASKS)})
            turns = [await called(labs, "play_turn", episode_id=episode["episode_id"], text=ask) for ask in ASKS]
            log = (await http.get(f"/episodes/{episode['episode_id']}")).json()["messages"]
            transcript: Json = {**WHERE, "messages": log, "agent_role": log[1]["role"]}
            over_http = (await http.post("/evaluate", json=transcript)).json()
            over_mcp = await called(labs, "evaluate", **transcript)
        os.kill(server.pid, signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0
    assert turns[-1]["episode_complete"]
    assert {turns[-1]["reward"], over_mcp["reward"]} == {over_http["reward"]}
    assert over_http["reward"] > 0


async def test_a_turn_that_was_stored_is_answered_and_another_is_a_503(tmp_path: Path) -> None:
    settings = {"LABS_DRAIN_S": "1", "LABS_METRICS_ACCESS": "open"}
    with server_process(tmp_path, keys=("acme",), **settings) as server:
        async with server.client("acme") as http, server.client("acme") as looking:
            made = [(await http.post("/episodes", json=WHERE)).json()["episode_id"] for _ in range(IN_FLIGHT)]

            async def play(number: int) -> httpx2.Response:
                # Words that nobody has said before, and too many to be read in the time left.
                words = " ".join(f"And what about the {number * 100 + i}th time, was it wet?" for i in range(40))
                call = {"name": "play_turn", "arguments": {"episode_id": made[number], "text": words}}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
                return await http.post(f"{server.url}/mcp", json=message, headers={"Accept": "application/json"})

            turns = [asyncio.create_task(play(number)) for number in range(IN_FLIGHT)]
            async with asyncio.timeout(60.0):
                while await in_work(server, looking) < IN_FLIGHT / 2:
                    pass
            os.kill(server.pid, signal.SIGTERM)
            answers = [await turn for turn in turns]
        assert {answer.status_code for answer in answers} <= {200, 503}
        refused = [answer for answer in answers if answer.status_code == 503]
        assert refused, "the turns were over too soon"
        assert all("retry-after" in answer.headers for answer in refused)
        assert await asyncio.to_thread(server.wait) == 0
    found = await stored(server.data, made)
    told = {
        name: answer.json()["result"]["structuredContent"]["observation"]["content"]
        for name, answer in zip(made, answers, strict=True)
        if answer.status_code == 200
    }
    assert {name: [row.observation for row in rows] for name, rows in found.items() if rows} == {
        name: [line] for name, line in told.items()
    }
