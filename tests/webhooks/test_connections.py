"""A connection serves the one name that its certificate was checked for, also where names share an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2

from reward_server.agents.endpoint import Endpoints
from reward_server.agents.pinned import PinnedTransport
from reward_server.webhooks.addresses import resolve
from reward_server.webhooks.names import NameLookups

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"  # HTTP/1.1: it may be kept


@dataclass
class Receiver:
    """Counts its connections and answers every request of each."""

    port: int = 0
    connections: int = 0
    requests: int = 0
    left: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"]
                await reader.readexactly(length)
                self.requests += 1
                writer.write(ANSWER)
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()
            self.left.release()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    async with server:
        receiver.port = server.sockets[0].getsockname()[1]
        yield receiver
        for _ in range(receiver.connections):
            await receiver.left.acquire()


async def test_each_turn_of_an_agent_has_a_connection_of_its_own() -> None:
    async with receiving() as receiver:
        endpoints = Endpoints(private=True, names=NameLookups(), timeout_s=20.0)
        for host in ("127.0.0.1", "localhost"):
            url = f"http://{host}:{receiver.port}/v1"
            target = await resolve(url, private=True, names=NameLookups())
            async with httpx2.AsyncClient(transport=PinnedTransport(endpoints._pool, target), trust_env=False) as http:
                assert (await http.post(url, content=b"{}")).status_code == 200
        await endpoints.close()
    assert (receiver.requests, receiver.connections) == (2, 2)
