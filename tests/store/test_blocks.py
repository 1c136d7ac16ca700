"""Blocks of store calls, done in one trip: durable or not there, and nobody's failure is anybody else's."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import IntegrityError, OperationalError

from reward_server.errors import EpisodeNotFound, StoreUnavailable
from reward_server.store.engine import open_reading, open_writing
from reward_server.store.readers import LANES, Readers
from reward_server.store.records import EpisodeRow
from reward_server.store.store import Block, Store
from reward_server.store.thread import ConnectionThread
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.store.writer import GROUP_LIMIT, UNSURE, Writer
from tests.store.builders import a_turn, after_a_turn, an_answer, an_episode
from tests.store.counting import counting_writer


def adding(*rows: EpisodeRow) -> Block[None]:
    async def add(unit: UnitOfWork) -> None:
        for row in rows:
            await unit.episodes.add(row)

    return add


async def there(store: Store, *rows: EpisodeRow) -> list[bool]:
    """Which of them are stored."""
    found = await store.read(lambda unit: unit.episodes.named("acme", [row.episode_id for row in rows]))
    return [row.episode_id in found for row in rows]


def delete(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM turn")


@pytest.fixture
async def lane(url: str) -> AsyncIterator[ConnectionThread]:
    thread = ConnectionThread(open_writing(url, busy_timeout_s=0.05), "writer")
    yield thread
    await thread.close()


# --- on both engines ----------------------------------------------------------------------------


async def test_a_block_is_stored_when_it_has_returned_what_it_found(store_on_both: Store) -> None:
    episode = an_episode()

    async def block(unit: UnitOfWork) -> tuple[EpisodeRow | None, EpisodeRow | None]:
        before = await unit.episodes.get("acme", episode.episode_id)
        await unit.episodes.add(episode)
        return before, await unit.episodes.get("acme", episode.episode_id)

    assert await store_on_both.write(block) == (None, episode)
    assert await there(store_on_both, episode) == [True]


@pytest.mark.parametrize("bad", [0, 1, 3])
async def test_a_call_that_fails_undoes_its_block_and_no_other(store_on_both: Store, bad: int) -> None:
    episodes, extra = [an_episode() for _ in range(4)], an_episode()
    blocks = [adding(row) for row in episodes]
    blocks[bad] = adding(extra, episodes[bad], episodes[bad])
    outcomes = await asyncio.gather(*map(store_on_both.write, blocks), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [IntegrityError if i == bad else type(None) for i in range(4)]
    assert await there(store_on_both, *episodes) == [index != bad for index in range(4)]
    assert await there(store_on_both, extra) == [False]


async def test_an_error_of_the_block_itself_undoes_it(store_on_both: Store) -> None:
    rows = [an_episode() for _ in range(3)]

    async def block(row: EpisodeRow, unit: UnitOfWork) -> None:
        await unit.episodes.add(row)
        raise LookupError

    outcomes = await asyncio.gather(*(store_on_both.write(partial(block, row)) for row in rows), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [LookupError] * 3
    assert await there(store_on_both, *rows) == [False] * 3
    await store_on_both.write(adding(rows[0]))
    assert await there(store_on_both, rows[0]) == [True]


async def test_after_a_failed_call_a_block_does_no_more(store_on_both: Store) -> None:
    episode, later = an_episode(), an_episode()

    async def go_on_regardless(unit: UnitOfWork) -> None:
        await unit.episodes.add(episode)
        with pytest.raises(IntegrityError):
            await unit.episodes.add(episode)
        await unit.episodes.add(later)

    with pytest.raises(RuntimeError, match="failed"):
        await store_on_both.write(go_on_regardless)
    assert await there(store_on_both, episode, later) == [False, False]


async def test_a_block_that_waits_for_something_else_is_refused_and_undone(store_on_both: Store) -> None:
    episode = an_episode()

    async def dawdle(unit: UnitOfWork) -> None:
        await unit.episodes.add(episode)
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="nothing but the store"):
        await store_on_both.write(dawdle)
    assert await there(store_on_both, episode) == [False]


async def test_a_block_that_reads_sees_one_state_and_cannot_write(store_on_both: Store) -> None:
    with pytest.raises(StoreUnavailable):
        await store_on_both.read(lambda unit: unit.answers.put(an_answer()))
    counts = await asyncio.gather(*(store_on_both.read(lambda unit: unit.keys.count()) for _ in range(10 * LANES)))
    assert counts == [0] * 10 * LANES


async def test_a_block_inside_a_unit_of_work_is_refused_instead_of_waiting_for_ever(store_on_both: Store) -> None:
    async def nest() -> None:
        async with store_on_both.transaction():
            await store_on_both.write(adding(an_episode()))

    with pytest.raises(RuntimeError, match="inside"):
        await nest()


# --- the shared commit --------------------------------------------------------------------------


async def test_blocks_and_units_of_work_are_done_in_the_order_they_came(store: Store) -> None:
    episode = an_episode()
    first, second, third = (after := after_a_turn(episode)), (after := after_a_turn(after)), after_a_turn(after)

    async def unit(row: EpisodeRow) -> None:
        async with store.transaction() as work:
            await work.episodes.append_turn(row, a_turn(row))

    async def block(row: EpisodeRow) -> None:
        await store.write(lambda work: work.episodes.append_turn(row, a_turn(row)))

    await asyncio.gather(store.write(adding(episode)), block(first), unit(second), block(third))
    turns = await store.read(lambda work: work.episodes.turns("acme", episode.episode_id))
    assert [turn.turn for turn in turns] == [1, 2, 3]


async def test_blocks_that_wait_share_a_commit(url: str) -> None:
    async with counting_writer(url) as (writer, commits):
        await asyncio.gather(*(writer.do(delete) for _ in range(GROUP_LIMIT)))
    assert len(commits) == 1


async def test_a_commit_that_fails_is_told_to_all_who_shared_it(url: str) -> None:
    engine = open_writing(url, busy_timeout_s=0.05)
    thread = ConnectionThread(engine, "writer")
    writer = Writer(thread)
    failures = [OSError("gone")]

    def fail(_connection: Connection) -> None:
        if failures:
            raise failures.pop()

    event.listen(engine, "commit", fail)
    outcomes = await asyncio.gather(*(writer.do(delete) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    assert {getattr(outcome, "message", "") for outcome in outcomes} == {UNSURE}
    assert len({id(outcome) for outcome in outcomes}) == 3
    await writer.do(delete)
    await writer.close()
    await thread.close()


async def test_a_database_that_fails_in_a_block_is_unavailable(store: Store, database: Path) -> None:
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.gather(
        *(store.write(adding(an_episode())) for _ in range(2 * GROUP_LIMIT)), return_exceptions=True
    )
    locker.close()
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    episode = an_episode()
    await store.write(adding(episode))
    assert await there(store, episode) == [True]


async def test_a_server_that_stops_leaves_nobody_waiting(lane: ConnectionThread) -> None:
    writer = Writer(lane)
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()

    waiting = asyncio.create_task(writer.do(slow))
    await begun.wait()
    behind = asyncio.create_task(writer.do(delete))
    await asyncio.sleep(0)
    writer._task.cancel()
    outcomes = await asyncio.gather(waiting, behind, return_exceptions=True)
    go_on.set()
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 2
    # The first may be stored all the same; the second has not begun.
    assert [getattr(outcome, "message", "") == UNSURE for outcome in outcomes] == [True, False]


# --- cancelled ----------------------------------------------------------------------------------


async def test_whoever_gives_up_before_it_began_has_stored_nothing(lane: ConnectionThread) -> None:
    writer = Writer(lane)
    begun, go_on, done = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def slow(_connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        done.append("slow")

    first = asyncio.create_task(writer.do(slow))
    await begun.wait()
    second = asyncio.create_task(writer.do(lambda _: done.append("given up")))
    third = asyncio.create_task(writer.do(lambda _: done.append("third")))
    await asyncio.sleep(0)
    second.cancel()
    go_on.set()
    await asyncio.gather(first, third)
    with pytest.raises(asyncio.CancelledError):
        await second
    assert done == ["slow", "third"]
    await writer.close()


async def test_whoever_gives_up_in_the_middle_has_stored_all_or_nothing(store: Store, database: Path) -> None:
    episode, other = an_episode(), an_episode()
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def slow(unit: UnitOfWork) -> None:
        await unit.episodes.add(episode)
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        after = after_a_turn(episode)
        await unit.episodes.append_turn(after, a_turn(after))

    task = asyncio.create_task(store.write(slow))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with sqlite3.connect(database) as outside:
        assert outside.execute("SELECT count(*) FROM episode").fetchone() == (0,)
    outside.close()
    go_on.set()
    await store.write(adding(other))
    turns = await store.read(lambda unit: unit.episodes.turns("acme", episode.episode_id))
    assert (await there(store, episode, other), len(turns)) == ([True, True], 1)


async def test_a_cancelled_reader_gives_its_connection_back_when_it_is_done(url: str) -> None:
    readers = Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05)), lanes=1, wait_s=5.0)
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        connection.exec_driver_sql("SELECT 1")

    task = asyncio.create_task(readers.do(slow))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await readers.do(lambda connection: connection.in_transaction()) is False
    assert readers.busy == 0
    await readers.close()


# --- readers, and the end -----------------------------------------------------------------------


def driver(connection: Connection) -> int:
    return id(connection.connection.dbapi_connection)


async def test_what_a_block_does_not_find_costs_no_connection(url: str) -> None:
    readers = Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05)), lanes=1)

    def miss(_connection: Connection) -> None:
        raise EpisodeNotFound

    before = await readers.do(driver)
    with pytest.raises(EpisodeNotFound):
        await readers.do(miss)
    assert await readers.do(driver) == before
    await readers.close()


async def test_after_a_fault_a_reader_has_another_connection(url: str) -> None:
    opened: list[int] = []
    engine = open_reading(url, busy_timeout_s=0.05)
    event.listen(engine, "connect", lambda _driver, _record: opened.append(1))
    readers = Readers(partial(ConnectionThread, engine), lanes=1)

    def fail(_connection: Connection) -> None:
        raise OperationalError("SELECT", {}, Exception("disk I/O error"))

    assert await readers.do(driver)
    with pytest.raises(StoreUnavailable):
        await readers.do(fail)
    assert await readers.do(driver)
    assert len(opened) == 2
    await readers.close()


async def test_what_is_queued_when_the_store_closes_is_still_stored_and_no_more(url: str, database: Path) -> None:
    store = await Store.open(url)
    tasks = [asyncio.create_task(store.write(adding(an_episode()))) for _ in range(5)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*tasks)
    with sqlite3.connect(database) as outside:
        assert outside.execute("SELECT count(*) FROM episode").fetchone() == (5,)
    outside.close()
    for refused in (store.write(adding(an_episode())), store.read(lambda unit: unit.keys.count())):
        with pytest.raises(StoreUnavailable):
            await refused
