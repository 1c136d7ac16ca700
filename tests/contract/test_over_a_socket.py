"""The same app behind a real web server on loopback: what only a socket can show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn

from personas.reading.matcher import Matcher
from scenarios.library import Library
from tests.contract.house import WAIT_S, WHERE, House, assert_error, running_house

JSON = {"Content-Type": "application/json"}
HALF = (
    b"POST /api/v1/evaluate HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
)


@asynccontextmanager
async def listening(house: House) -> AsyncIterator[int]:
    """The port of a server; the app is started already."""
    config = uvicorn.Config(house.app, port=0, lifespan="off", log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(WAIT_S):
        while not server.started:  # noqa: ASYNC110 (the server has no event for this)
            await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
async def quick_house(
    data: Path, matcher: Matcher, library: Library, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    monkeypatch.setattr("reward_server.api.body.DEADLINE_S", 0.3)
    async with running_house(data, matcher, library) as running:
        yield running


async def exchange(port: int, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send raw bytes, read one response to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        await writer.drain()
        async with asyncio.timeout(WAIT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body
    finally:
        writer.close()


async def test_an_episode_from_creation_to_its_end(house: House) -> None:
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1") as http:
        episode = (await http.post("/episodes", json=WHERE)).json()
        path = f"/episodes/{episode['episode_id']}"
        turn = await http.post(f"{path}/turns", json={"messages": [{"role": "user", "content": "How did it happen?"}]})
        assert (turn.status_code, turn.json()["turn"]) == (200, 1)
        ended = (await http.delete(path)).json()
        assert (ended["status"], ended["turn"]) == ("complete", 1)
        assert_error(await http.get("/nowhere"), 404, "not_found")
        assert_error(await http.put(path), 405, "method_not_allowed")


async def test_a_pasted_curl_line_gets_an_answer(house: House) -> None:
    body = json.dumps(WHERE).encode()
    request = (
        b"POST /api/v1/episodes HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    async with listening(house) as port:
        status, headers, answer = await exchange(port, request + body)
    assert status == 200
    assert json.loads(answer)["request_id"] == headers["x-request-id"]


async def test_a_body_announced_too_large_is_413_before_it_is_sent(quick_house: House) -> None:
    head = (
        b"POST /api/v1/evaluate HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 4000001\r\n\r\n"
    )
    async with listening(quick_house) as port:
        status, headers, body = await exchange(port, head)
    assert status == 413
    assert json.loads(body)["data"]["request_id"] == headers["x-request-id"]


async def test_a_chunked_body_is_cut_off_at_the_limit(quick_house: House) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b" " * 100_000

    async with listening(quick_house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        response = await http.post("/api/v1/evaluate", content=chunks(), headers=JSON)
        assert_error(response, 413, "body_too_large")


async def test_a_body_that_never_arrives_is_408_and_the_connection_ends(quick_house: House) -> None:
    head = HALF
    async with listening(quick_house) as port:
        status, headers, body = await exchange(port, head)
    assert (status, json.loads(body)["data"]["code"]) == (408, "body_too_slow")
    assert headers["connection"] == "close"


async def test_a_turn_survives_a_client_that_hangs_up(house: House) -> None:
    async with house.client() as labs:
        episode = await labs.create()
        body = json.dumps({"messages": [{"role": "user", "content": "How did it happen?"}]}).encode()
        path = f"/api/v1/episodes/{episode['episode_id']}/turns"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nIdempotency-Key: k1\r\n\r\n"
        )
        house.matcher.close()
        async with listening(house) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode() + body)
            await house.matcher.somebody_waits()
            writer.close()
            retry = asyncio.create_task(labs.say(episode, "How did it happen?", key="k1"))
            house.matcher.open()
            assert (await retry)["turn"] == 1
        assert (await labs.read(episode))["turn"] == 1


async def test_a_client_that_hangs_up_in_its_body_leaves_no_error(house: House) -> None:
    head = HALF
    async with listening(house) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http, asyncio.timeout(WAIT_S):
            while 'status="499"' not in (await http.get("/metrics")).text:
                pass
    assert "request_failed" not in house.logs.getvalue()


async def test_one_connection_takes_many_requests_after_errors(house: House) -> None:
    async with listening(house) as port, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1") as http:
        for _ in range(3):
            assert (await http.post("/evaluate", content=b"{", headers=JSON)).status_code == 400
            assert (await http.get("/nowhere")).status_code == 404
            assert (await http.get("/catalog")).status_code == 200
