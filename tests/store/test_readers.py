"""Reading: one state, no writing, and the connection always comes back."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection

from reward_server.errors import StoreUnavailable
from reward_server.store.engine import open_reading
from reward_server.store.readers import LANES, Readers
from reward_server.store.store import Store
from reward_server.store.thread import ConnectionThread
from tests.store.builders import an_answer, an_episode


async def test_a_reader_sees_the_state_at_its_first_query(store: Store) -> None:
    async with store.reading() as before:
        assert await before.keys.count() == 0
        episode = an_episode()
        async with store.transaction() as work:
            await work.episodes.add(episode)
        assert await before.episodes.get("acme", episode.episode_id) is None
    async with store.reading() as after:
        assert await after.episodes.get("acme", episode.episode_id) == episode


async def test_a_reader_does_not_wait_for_a_writer(store: Store) -> None:
    async with store.transaction() as work:
        await work.episodes.add(an_episode())
        async with store.reading() as reader:
            assert await reader.keys.count() == 0


async def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(StoreUnavailable):
        async with store.reading() as work:
            await work.answers.put(an_answer())


async def test_more_readers_than_threads_take_turns(store: Store) -> None:
    async def count() -> int:
        async with store.reading() as work:
            return await work.keys.count()

    assert await asyncio.gather(*(count() for _ in range(10 * LANES))) == [0] * 10 * LANES


async def test_who_waits_too_long_for_a_connection_is_refused(url: str) -> None:
    readers = Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05)), lanes=1, wait_s=0.01)
    async with readers.unit():
        with pytest.raises(StoreUnavailable):
            async with readers.unit():
                pass
    async with readers.unit() as session:
        assert await session.run(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one()) == 1
    await readers.close()


async def test_a_cancelled_reader_gives_its_connection_back(url: str) -> None:
    readers = Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05)), lanes=1, wait_s=5.0)
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()
    go_on = threading.Event()

    def slow(connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        connection.exec_driver_sql("SELECT 1")

    async def read() -> None:
        async with readers.unit() as session:
            await session.run(slow)

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with readers.unit() as session:
        assert await session.run(lambda connection: connection.in_transaction()) is False
    await readers.close()


async def test_an_error_in_the_block_gives_the_connection_back(url: str) -> None:
    readers = Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05)), lanes=1, wait_s=5.0)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            async with readers.unit() as session:
                await session.run(lambda connection: connection.exec_driver_sql("SELECT nonsense FROM nowhere"))
    async with readers.unit() as session:
        assert await session.run(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one()) == 1
    await readers.close()


async def test_a_ping_tells_whether_the_database_can_be_read(store: Store, database: Path) -> None:
    await store.ping()
    for file in database.parent.glob("labs.sqlite*"):
        file.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreUnavailable):
        await store.ping()
