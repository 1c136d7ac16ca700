"""A real server process beside clients that mean no good. None of them needs a key."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx2
import pytest

from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

SOCKETS = 80
PLACES = 40
ASSET = b"GET /docs/assets/swagger-ui-bundle.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SETTINGS = {
    "LABS_MAX_CONCURRENCY": str(PLACES // 2),
    "LABS_METRICS_ACCESS": "open",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("hostile"), keys=("acme", "slow"), **SETTINGS) as running:
        yield running


@pytest.fixture
def sockets(server: ServerProcess) -> Iterator[list[socket.socket]]:
    """More connections than there are places, that do nothing yet."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(SOCKETS)]
        yield opened


def send(each: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # it may have lost its place
        each.sendall(data)


async def require_service(server: ServerProcess) -> None:
    """Both probes answer, and a turn with a key is played."""
    async with server.client("acme") as http:
        served(await http.get(f"{server.url}/healthz"))
        served(await http.get(f"{server.url}/readyz"))
        episode = served(await http.post("/episodes", json=WHERE))["episode_id"]
        served(await http.post(f"/episodes/{episode}/turns", json={"messages": [{"role": "user", "content": "Hi."}]}))


def served(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, f"{answer.request.url.path}: {answer.status_code} {answer.text}"
    return answer.json()


async def turned_away(server: ServerProcess) -> float:
    """How many requests have found no place so far."""
    async with server.client("acme") as http:
        page = (await http.get(f"{server.url}/metrics")).text
    [line] = [each for each in page.splitlines() if each.startswith("labs_turned_away_total ")]
    return float(line.split()[1])


async def test_silent_connections_keep_nobody_out(server: ServerProcess, sockets: list[socket.socket]) -> None:
    await require_service(server)


async def test_answers_that_are_not_read_keep_nobody_out(server: ServerProcess, sockets: list[socket.socket]) -> None:
    before = await turned_away(server)
    for each in sockets:
        send(each, ASSET * 3)
    await require_service(server)
    # Twice as many as there are places ask at once, without a key: not even for a moment does one hold any.
    assert await turned_away(server) == before


async def test_a_client_that_runs_ahead_of_its_answers_is_hung_up_on(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as ahead:
        ahead.settimeout(20.0)
        send(ahead, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 5000)
        received = 0
        try:
            while part := ahead.recv(1 << 16):
                received += part.count(b"HTTP/1.1 200")
        except ConnectionError:
            pass
    assert received < 100
    await require_service(server)


async def test_bodies_that_come_slowly_take_the_places_of_their_own_lab(server: ServerProcess) -> None:
    head = (
        b"POST /api/v1/evaluate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + server.keys["slow"].encode() + b"\r\nContent-Length: 50\r\n\r\n{"
    )
    with ExitStack() as stack:
        for _ in range(PLACES // 2 + 2):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port))).sendall(head)
        async with server.client("slow") as http, asyncio.timeout(20.0):
            # Until their keys have been looked up, all of them hold places: 503 for a moment.
            while (refused := await http.get("/catalog")).status_code in (200, 503):
                pass
        assert (refused.status_code, refused.json()["data"]["code"]) == (429, "too_many_at_once")
        assert int(refused.headers["retry-after"]) >= 1
        await require_service(server)
