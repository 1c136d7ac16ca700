"""A name server that never answers keeps nobody but its own lab from looking up."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reward_server.limits.fair_threads import working_for
from reward_server.webhooks import names
from reward_server.webhooks.names import NameLookups

WAIT_S = 20.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names in `.never` have no answer before the test ends; what was asked for so far."""
    known, over, look_up = list[str](), threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *others: Any, **options: Any) -> Any:
        known.append(host)
        if host.endswith(".never"):
            over.wait(WAIT_S)
            raise socket.gaierror
        return look_up(host, port, *others, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield known
    over.set()


async def look_up(found: NameLookups, lab: str, *hosts: str) -> list[list[names.Address]]:
    with working_for(lab):
        return await asyncio.gather(*(found.addresses(host, 443) for host in hosts))


async def test_names_without_an_answer_hold_up_their_own_lab_alone(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "RESOLVE_S", 0.2)
    found = NameLookups()
    hosts = [f"a{number}.never" for number in range(20)]
    async with asyncio.timeout(WAIT_S):
        while len(asked) < names.AT_ONCE:  # on a busy machine, threads may start too late for the first time
            assert await look_up(found, "acme", *hosts) == [[]] * len(hosts)
    assert await look_up(found, "acme", "127.0.0.1") == [[]]  # those that were given up still count
    assert len(asked) == names.AT_ONCE
    monkeypatch.setattr(names, "RESOLVE_S", WAIT_S)
    [addresses] = await look_up(found, "rival", "127.0.0.1")
    assert [str(address) for address in addresses] == ["127.0.0.1"]
    # What the server itself looks up for its providers has threads of its own.
    async with asyncio.timeout(WAIT_S):
        assert await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 443)


async def test_a_lab_looks_up_again_once_its_lookups_have_ended(asked: list[str]) -> None:
    found = NameLookups()
    assert await look_up(found, "acme", "127.0.0.1", "a" * 70, "127.0.0.1", "::1", "b" * 70)
    [addresses] = await look_up(found, "acme", "127.0.0.1")
    assert [str(address) for address in addresses] == ["127.0.0.1"]
    assert len(asked) == 6
