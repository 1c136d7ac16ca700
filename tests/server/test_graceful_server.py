"""The end of a server: whoever was connected before it is answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config

from reward_server.server.graceful_server import GracefulServer
from reward_server.server.http_protocol import BoundedHttpProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CLIENTS = 20


async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Running:
    """A server that has started, in this process: nothing is accepted or read until the loop runs."""

    def __init__(self, server: GracefulServer, listener: socket.socket) -> None:
        self.server = server
        self.listener = listener

    def connect(self) -> socket.socket:
        """A connection that the system has made; the server may not know of it yet."""
        return socket.create_connection(self.listener.getsockname())

    async def until_open(self, connections: int) -> None:
        async with asyncio.timeout(30.0):
            while len(self.server.server_state.connections) < connections:  # noqa: ASYNC110 (uvicorn has no event)
                await asyncio.sleep(0)

    async def end(self) -> None:
        await self.server.shutdown([self.listener])


async def running() -> Running:
    config = Config(app, http=BoundedHttpProtocol, lifespan="off", log_config=None, timeout_graceful_shutdown=30)
    config.load()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    server = GracefulServer(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    return Running(server, listener)


def answers_of(clients: list[socket.socket]) -> list[bytes]:
    """What each of them was told until the server hung up."""
    told = []
    for client in clients:
        parts = []
        with client:
            while part := client.recv(4096):
                parts.append(part)
        told.append(b"".join(parts))
    return told


def read_first_answers(clients: list[socket.socket]) -> None:
    for client in clients:
        told = b""
        while not told.endswith(b"ok"):
            told += client.recv(4096)


async def answers_to_those_in_the_queue(at: Running) -> list[bytes]:
    clients = [at.connect() for _ in range(CLIENTS)]
    for client in clients:
        client.sendall(REQUEST)
    await at.end()
    return await asyncio.to_thread(answers_of, clients)


async def answers_to_what_is_not_read_yet(at: Running) -> list[bytes]:
    clients = [at.connect() for _ in range(CLIENTS)]
    await at.until_open(CLIENTS)
    for client in clients:
        client.sendall(REQUEST)
    await at.end()
    return await asyncio.to_thread(answers_of, clients)


async def answers_to_a_second_request(at: Running) -> list[bytes]:
    clients = [at.connect() for _ in range(CLIENTS)]
    for client in clients:
        client.sendall(REQUEST)
    await at.until_open(CLIENTS)
    await asyncio.to_thread(read_first_answers, clients)
    for client in clients:
        client.sendall(REQUEST)
    await at.end()
    return await asyncio.to_thread(answers_of, clients)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    "answers", [answers_to_those_in_the_queue, answers_to_what_is_not_read_yet, answers_to_a_second_request]
)
def test_no_connection_is_reset(
    answers: Callable[[Running], Coroutine[Any, Any, list[bytes]]], new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def told() -> list[bytes]:
        return await answers(await running())

    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = runner.run(told())
    assert [each[:12] for each in found] == [b"HTTP/1.1 200"] * CLIENTS
