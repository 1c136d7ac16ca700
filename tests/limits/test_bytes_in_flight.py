"""A lab's bytes in flight have one bound, and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.errors import TooManyAtOnce
from reward_server.limits import bytes_in_flight
from reward_server.limits.bytes_in_flight import BytesInFlight, LabBytes, Reservation


class Reader:
    """Notes when it may read on."""

    def __init__(self) -> None:
        self.reads = False

    def read_on(self) -> None:
        self.reads = True


async def test_a_body_waits_for_room_and_the_first_to_wait_gets_it() -> None:
    lab = LabBytes(100)
    first, second, third = (Reservation(lab) for _ in range(3))
    await first.take(90)
    waiting = [asyncio.create_task(second.take(50)), asyncio.create_task(third.take(10))]
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting), "a small one would keep a large one waiting for ever"
    first.leave()
    await asyncio.gather(*waiting)
    assert lab.held_bytes == 60
    second.keep(5)
    assert lab.held_bytes == 15
    second.leave()
    third.leave()
    assert lab.held_bytes == 0


async def test_where_there_is_no_room_in_time_it_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytes_in_flight, "WAIT_S", 0.01)
    lab = LabBytes(2_000_000)
    await Reservation(lab).take(2_000_000)
    with pytest.raises(TooManyAtOnce, match="2 MB of requests in progress"):
        await Reservation(lab).take(1)
    assert lab.held_bytes == 2_000_000


async def test_whoever_gives_up_waiting_holds_nothing_and_lets_the_next_one_go_on() -> None:
    lab = LabBytes(100)
    held, gone, small = (Reservation(lab) for _ in range(3))
    await held.take(60)
    leaving, staying = asyncio.create_task(gone.take(100)), asyncio.create_task(small.take(40))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert lab.held_bytes == 100


async def test_a_body_larger_than_the_room_goes_alone() -> None:
    lab = LabBytes(10)
    alone = Reservation(lab)
    await alone.take(50)
    assert lab.held_bytes == 50


def test_of_readers_that_fill_the_room_with_parts_of_messages_one_at_a_time_reads_on() -> None:
    lab, one, other = LabBytes(10), Reader(), Reader()
    lab.change(12)
    lab.pause(one)
    lab.pause(other)
    assert (one.reads, other.reads) == (True, False)
    assert lab.may_read(one)
    assert not lab.may_read(other)
    lab.finish(one)
    assert other.reads
    assert not lab.may_read(one)


def test_readers_read_on_as_soon_as_there_is_room() -> None:
    lab, readers = LabBytes(10), [Reader() for _ in range(3)]
    lab.change(10)
    for each in readers:
        lab.pause(each)
    lab.change(-1)
    assert all(each.reads for each in readers)


async def test_a_lab_takes_no_room_of_another() -> None:
    labs = BytesInFlight(10)
    one, other = labs.of("one"), labs.of("other")
    assert labs.of("one") is one
    await Reservation(one).take(10)
    await Reservation(other).take(10)
