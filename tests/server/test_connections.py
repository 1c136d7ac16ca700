"""Who may be connected when there are more than there are places."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from reward_server.server import connections
from reward_server.server.connections import Connections


@dataclass(eq=False)
class Fake:
    """A connection; `unread` is what waits to be read."""

    address: str = "10.0.0.1"
    is_answering: bool = False
    unread: int = 0
    ended: bool = False
    lab: str | None = None

    @property
    def unread_bytes(self) -> int:
        return self.unread

    def hang_up(self) -> None:
        self.ended = True


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def door() -> Connections:
    return Connections(most=4, most_per_address=2, most_per_lab=3, monotonic=Time())


async def test_the_quietest_of_the_same_address_gives_way(door: Connections) -> None:
    first, second, other, newcomer = Fake(), Fake(), Fake("10.0.0.2"), Fake()
    for each in (first, second, other):
        assert door.enter(each)
    door.stirs(first)
    assert door.enter(newcomer)
    assert (first.ended, second.ended, other.ended, len(door)) == (False, True, False, 3)


async def test_a_host_has_one_share_over_all_its_ipv6_addresses(door: Connections) -> None:
    first, second, third = (Fake(f"2001:db8::{number}") for number in range(3))
    for each in (first, second, third):
        assert door.enter(each)
    assert (first.ended, len(door)) == (True, 2)
    door.leave(second)
    door.leave(third)
    assert len(door) == 0
    assert not door._of


async def test_who_is_being_answered_keeps_its_place(door: Connections) -> None:
    busy = [Fake(is_answering=True), Fake(is_answering=True)]
    for each in busy:
        assert door.enter(each)
    assert not door.enter(Fake())
    assert not any(each.ended for each in busy)
    assert door.enter(Fake("10.0.0.2"))


async def test_where_all_places_are_taken_the_address_with_the_most_gives_one() -> None:
    door = Connections(most=4, most_per_address=4)
    many, one = [Fake() for _ in range(3)], Fake("10.0.0.2")
    for each in (*many, one):
        assert door.enter(each)
    assert door.enter(Fake("10.0.0.3"))
    assert ([each.ended for each in many], one.ended) == ([True, False, False], False)


async def test_behind_one_proxy_a_lab_with_many_takes_no_place_of_another() -> None:
    door = Connections(most=100, most_per_address=4, most_per_lab=4)
    greedy, modest, unknown = [Fake(lab="greedy") for _ in range(4)], Fake(), Fake()
    for each in (*greedy, modest):
        assert door.enter(each)
    modest.lab = "modest"
    door.stirs(modest)
    more = [Fake() for _ in range(3)]
    for each in more:
        assert door.enter(each)
        each.lab = "greedy"
        door.stirs(each)
    assert door.enter(unknown)
    assert [each.ended for each in greedy] == [True, True, True, False]
    assert not any(each.ended for each in (modest, unknown, *more))


async def test_connections_whose_key_is_known_by_now_leave_the_share_of_their_address(door: Connections) -> None:
    first, second, third = Fake(), Fake(), Fake()
    door.enter(first)
    door.enter(second)
    first.lab, second.lab = "acme", "rival"
    assert door.enter(third)
    assert not any(each.ended for each in (first, second, third))
    for each in (first, second, third):
        door.leave(each)
    assert (len(door), door._of, door._owners) == (0, {}, {})


async def test_a_connection_that_ends_frees_its_place_once(door: Connections) -> None:
    first, second = Fake(), Fake()
    door.enter(first)
    door.enter(second)
    door.leave(first)
    door.leave(first)
    assert len(door) == 1
    assert door.enter(Fake())
    assert not second.ended


async def test_an_answer_that_is_not_read_is_given_up_after_a_while(door: Connections) -> None:
    slow, reading, idle = Fake(unread=1000), Fake("10.0.0.2", unread=1000), Fake("10.0.0.3")
    for each in (slow, reading, idle):
        door.enter(each)
    door.sweep()
    assert isinstance(door.monotonic, Time)
    door.monotonic.now = door.write_deadline_s + 1
    reading.unread = 500
    door.sweep()
    assert (slow.ended, reading.ended, idle.ended) == (True, False, False)
    door.monotonic.now *= 2
    door.sweep()
    assert reading.ended


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connections, "MOST_UNREAD_BYTES", 1500)
    return


async def test_too_much_that_is_not_read_costs_the_one_that_waits_longest(
    door: Connections, little_memory: None
) -> None:
    first, second, third = Fake(unread=1000), Fake("10.0.0.2", unread=1000), Fake("10.0.0.3", unread=200)
    for each in (first, second, third):
        door.enter(each)
        door.waits(each)
    assert (first.ended, second.ended, third.ended) == (True, False, False)


async def test_looking_goes_on_as_long_as_somebody_is_connected() -> None:
    door = Connections(write_deadline_s=0.02)
    stuck = Fake(unread=10)
    door.enter(stuck)
    async with asyncio.timeout(20.0):
        while not stuck.ended:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.005)
    assert len(door) == 0
