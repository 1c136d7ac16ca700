"""A database that cannot be used: 503, nothing half written, and back to work when it can."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.exc import IntegrityError, OperationalError

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store.engine import open_reading, open_writing, sqlite_url
from reward_server.store.faults import store_faults
from reward_server.store.readers import Readers
from reward_server.store.store import Store
from reward_server.store.thread import ConnectionThread
from reward_server.store.writer import Writer
from tests.store.builders import a_turn, after_a_turn, an_episode

ROOT = Path(__file__).parents[2]


async def test_a_locked_database_refuses_writes_and_keeps_reading(store: Store, database: Path) -> None:
    episode = an_episode()
    async with store.transaction() as work:
        await work.episodes.add(episode)
    after = after_a_turn(episode)
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable) as caught:
        async with store.transaction() as work:
            await work.episodes.append_turn(after, a_turn(after))
    assert caught.value.retry_after_s >= 1
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) == episode
    locker.execute("COMMIT")
    locker.close()
    async with store.transaction() as work:
        await work.episodes.append_turn(after, a_turn(after))
    async with store.reading() as work:
        assert await work.episodes.turns("acme", episode.episode_id) == [a_turn(after)]


async def test_a_lock_refuses_everybody_who_waited_together(store: Store, database: Path) -> None:
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")

    async def add() -> None:
        async with store.transaction() as work:
            await work.episodes.add(an_episode())

    outcomes = await asyncio.gather(*(add() for _ in range(100)), return_exceptions=True)
    locker.close()
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert len({id(outcome) for outcome in outcomes}) == 100
    await add()


async def test_a_lock_is_waited_for_once_and_not_by_one_after_the_other(url: str, database: Path) -> None:
    engine = open_writing(url, busy_timeout_s=0.05)
    attempts: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *call: attempts.append(call[2]))
    thread = ConnectionThread(engine, "writer")
    writer = Writer(thread)

    async def enter() -> None:
        async with writer.unit():
            pass

    await enter()
    attempts.clear()
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.gather(*(enter() for _ in range(100)), return_exceptions=True)
    locker.close()
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert attempts == ["BEGIN IMMEDIATE"]
    await writer.close()
    await thread.close()


async def test_a_writer_holds_the_lock_from_the_beginning(store: Store, database: Path) -> None:
    locker = sqlite3.connect(database, isolation_level=None, timeout=0)
    async with store.transaction():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            locker.execute("BEGIN IMMEDIATE")
    locker.execute("BEGIN IMMEDIATE")
    locker.close()


def test_a_committed_write_is_flushed_to_the_disk_and_references_are_checked(url: str) -> None:
    with open_writing(url, busy_timeout_s=0.05).connect() as connection:
        pragmas = ("synchronous", "journal_mode", "foreign_keys")
        found = {pragma: connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() for pragma in pragmas}
    assert found == {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1}


async def test_a_read_only_database_refuses_writes(url: str, database: Path) -> None:
    read_only = create_engine(f"sqlite:///file:{database}?mode=ro&uri=true", hide_parameters=True)
    store = Store(
        url,
        [ConnectionThread(read_only, "writer")],
        Readers(partial(ConnectionThread, open_reading(url, busy_timeout_s=0.05))),
    )
    episode = an_episode()
    with pytest.raises(StoreUnavailable):
        async with store.transaction() as work:
            await work.episodes.add(episode)
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) is None
    await store.close()


async def test_a_database_that_is_gone_refuses_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        await Store.open(sqlite_url(tmp_path / "nowhere" / "labs.sqlite"))


async def test_a_database_without_tables_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="migrated"):
        await Store.open(sqlite_url(tmp_path / "labs.sqlite"))


def test_a_damaged_database_is_not_opened(url: str, database: Path) -> None:
    database.write_bytes(b"this is no database at all" * 1000)
    with pytest.raises(ConfigurationError):
        asyncio.run(Store.open(url))


def test_a_full_disk_refuses_writes_and_recovers(url: str, database: Path) -> None:
    """In a process of its own, which limits how large its files may become."""
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fill_the_disk.py")), url],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    report = json.loads(run.stdout)
    assert report["refused"] > 0
    assert report["acknowledged_after"] > report["acknowledged_before"] > 0
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = connection.execute("SELECT count(*), max(turn) FROM turn").fetchone()
        turn = connection.execute("SELECT turn FROM episode").fetchone()
    connection.close()
    assert stored == (report["acknowledged_after"], report["acknowledged_after"])
    assert turn == (report["acknowledged_after"],)


def test_our_own_mistakes_are_not_trouble_of_the_database() -> None:
    with pytest.raises(IntegrityError), store_faults():
        raise IntegrityError("insert", None, sqlite3.IntegrityError())
    with pytest.raises(StoreUnavailable) as caught, store_faults():
        raise OperationalError("insert", None, sqlite3.OperationalError("database is locked"))
    assert "locked" not in str(caught.value)
    with pytest.raises(LookupError), store_faults():
        raise LookupError


async def test_a_database_error_does_not_repeat_what_was_stored(store: Store) -> None:
    episode = an_episode(opening="the canary sings")

    async def add_twice() -> None:
        async with store.transaction() as work:
            await work.episodes.add(episode)
            await work.episodes.add(episode)

    with pytest.raises(IntegrityError) as caught:
        await add_twice()
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(caught.value)
