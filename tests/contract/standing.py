"""A house that stands for many tests, in a thread and an event loop of its own: each test is another lab there.

Starting a house takes longer than most tests. In modules marked `one_house`, tests that take `labs` or `episode` share
this one; a test that takes `house` as well, to change it or to look into it, has a house and a client of its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from personas.reading.matcher import Matcher
from reward_server.auth.lab import DEVELOPMENT_LAB
from scenarios.library import Library
from tests.contract.documented import documented
from tests.contract.house import Client, House, running_house


class AcrossThreads(httpx2.AsyncBaseTransport):
    """Sends each request in the event loop of the house, whichever loop it comes from."""

    def __init__(self, portal: BlockingPortal, house: House) -> None:
        self._portal = portal
        self._inner = httpx2.ASGITransport(app=house.app)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self._portal.start_task_soon(self._inner.handle_async_request, request)
        return await asyncio.wrap_future(answer)


class StandingHouse:
    """A running server that a test can reach by calls alone."""

    def __init__(self, portal: BlockingPortal, house: House) -> None:
        self._portal = portal
        self._house = house
        self._tests = itertools.count(1)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Development mode for a lab that has done nothing so far."""
        usual, own = DEVELOPMENT_LAB.lab_id, f"development-{next(self._tests)}"
        # The server knows this lab by its identity: the same object has another id for as long as the test runs.
        object.__setattr__(DEVELOPMENT_LAB, "lab_id", own)
        try:
            self._portal.call(self._house.app.state.services.tenants.ensure, own)
            transport = AcrossThreads(self._portal, self._house)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
                yield Client(http, documented())
        finally:
            object.__setattr__(DEVELOPMENT_LAB, "lab_id", usual)


@contextmanager
def standing_house(data: Path, matcher: Matcher, library: Library) -> Iterator[StandingHouse]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_house(data, matcher, library)) as house,
    ):
        yield StandingHouse(portal, house)
