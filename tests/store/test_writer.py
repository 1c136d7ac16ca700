"""The shared commit: durable when told so, and nobody's failure is anybody else's."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from reward_server.errors import StoreUnavailable
from reward_server.store.engine import open_writing
from reward_server.store.session import LaneSession
from reward_server.store.store import Store
from reward_server.store.thread import ConnectionThread
from reward_server.store.writer import GROUP_LIMIT, Writer
from tests.store.builders import a_turn, after_a_turn, an_episode
from tests.store.counting import counting_writer


def stored(database: Path) -> set[str]:
    """What another process would see."""
    with sqlite3.connect(database) as other:
        found = {row[0] for row in other.execute("SELECT episode_id FROM episode")}
    other.close()
    return found


async def test_a_unit_of_work_is_durable_when_its_block_was_left(store: Store, database: Path) -> None:
    episode = an_episode()
    async with store.transaction() as work:
        await work.episodes.add(episode)
        assert stored(database) == set()
    assert stored(database) == {episode.episode_id}


async def test_an_error_in_the_block_undoes_all_of_it(store: Store, database: Path) -> None:
    async def fail() -> None:
        async with store.transaction() as work:
            await work.episodes.add(an_episode())
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert stored(database) == set()


async def test_many_at_once_are_all_stored(store: Store, database: Path) -> None:
    episodes = [an_episode() for _ in range(3 * GROUP_LIMIT)]

    async def play(start: str) -> None:
        episode = next(row for row in episodes if row.episode_id == start)
        async with store.transaction() as work:
            await work.episodes.add(episode)
        for _ in range(3):
            episode = after_a_turn(episode)
            async with store.transaction() as work:
                await work.episodes.append_turn(episode, a_turn(episode))

    await asyncio.gather(*(play(row.episode_id) for row in episodes))
    assert stored(database) == {row.episode_id for row in episodes}
    async with store.reading() as work:
        for row in episodes:
            assert [turn.turn for turn in await work.episodes.turns("acme", row.episode_id)] == [1, 2, 3]


async def test_those_who_wait_share_a_commit(url: str) -> None:
    async with counting_writer(url) as (writer, commits):

        async def add() -> None:
            async with writer.unit() as session:
                await session.run(lambda connection: connection.exec_driver_sql("DELETE FROM turn"))

        await asyncio.gather(*(add() for _ in range(GROUP_LIMIT)))
    assert len(commits) == 1


@pytest.mark.parametrize("bad", [0, 1, 3])
async def test_a_failed_member_takes_nobody_along(store: Store, database: Path, bad: int) -> None:
    episodes = [an_episode() for _ in range(4)]
    outcomes: list[str] = []

    async def add(index: int) -> None:
        try:
            async with store.transaction() as work:
                await work.episodes.add(episodes[index])
                if index == bad:
                    await work.episodes.add(episodes[index])
        except IntegrityError:
            outcomes.append("refused")
        else:
            outcomes.append("stored")

    await asyncio.gather(*(add(index) for index in range(4)))
    assert sorted(outcomes) == ["refused", "stored", "stored", "stored"]
    assert stored(database) == {row.episode_id for index, row in enumerate(episodes) if index != bad}


async def test_every_member_can_fail(store: Store, database: Path) -> None:
    async def fail() -> None:
        async with store.transaction() as work:
            await work.episodes.add(an_episode())
            raise LookupError

    outcomes = await asyncio.gather(*(fail() for _ in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [LookupError] * 5
    assert stored(database) == set()


async def test_an_empty_unit_of_work_is_fine_anywhere_in_a_group(store: Store, database: Path) -> None:
    episode = an_episode()

    async def nothing(*, fails: bool) -> None:
        async with store.transaction():
            if fails:
                raise LookupError

    async def something() -> None:
        async with store.transaction() as work:
            await work.episodes.add(episode)

    await asyncio.gather(
        nothing(fails=False), something(), nothing(fails=True), nothing(fails=False), return_exceptions=True
    )
    assert stored(database) == {episode.episode_id}


async def test_one_who_is_cancelled_while_waiting_blocks_nobody(store: Store, database: Path) -> None:
    kept = an_episode()

    async def add(row: object) -> None:
        async with store.transaction() as work:
            await work.episodes.add(row)  # type: ignore[arg-type]

    async with store.transaction() as work:
        waiting = asyncio.create_task(add(an_episode()))
        after = asyncio.create_task(add(kept))
        await asyncio.sleep(0)
        waiting.cancel()
        await work.keys.count()
    await after
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert stored(database) == {kept.episode_id}


async def test_one_who_is_cancelled_in_the_middle_leaves_no_trace(store: Store, database: Path) -> None:
    kept = an_episode()
    begun = asyncio.Event()

    async def stuck() -> None:
        async with store.transaction() as work:
            await work.episodes.add(an_episode())
            begun.set()
            await asyncio.Event().wait()

    async def add() -> None:
        async with store.transaction() as work:
            await work.episodes.add(kept)

    task = asyncio.create_task(stuck())
    await begun.wait()
    waiting = asyncio.create_task(add())
    await asyncio.sleep(0)
    task.cancel()
    await waiting
    assert stored(database) == {kept.episode_id}


async def test_being_cancelled_during_a_statement_neither_breaks_nor_keeps_it(url: str) -> None:
    thread = ConnectionThread(open_writing(url, busy_timeout_s=0.05), "writer")
    writer = Writer(thread)
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()
    go_on = threading.Event()

    def slow(connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        connection.exec_driver_sql("INSERT INTO stored_answer VALUES ('acme', 'k', 'f', 200, '{}', '2026-01-01')")

    async def cancelled() -> None:
        async with writer.unit() as session:
            await session.run(slow)

    task = asyncio.create_task(cancelled())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    async with writer.unit() as session:
        left = await session.run(lambda c: c.exec_driver_sql("SELECT count(*) FROM stored_answer").scalar_one())
    assert left == 0
    await writer.close()
    await thread.close()


async def test_after_a_failed_statement_the_unit_of_work_takes_no_more(store: Store, database: Path) -> None:
    episode = an_episode()

    async def go_on_regardless() -> None:
        async with store.transaction() as work:
            await work.episodes.add(episode)
            with pytest.raises(IntegrityError):
                await work.episodes.add(episode)
            await work.episodes.add(an_episode())

    with pytest.raises(RuntimeError, match="failed"):
        await go_on_regardless()
    assert stored(database) == set()


async def test_a_unit_of_work_ends_with_its_block(store: Store) -> None:
    async with store.transaction() as work:
        pass
    with pytest.raises(RuntimeError, match="over"):
        await work.keys.count()


async def test_nesting_is_refused_instead_of_waiting_for_ever(store: Store) -> None:
    async def nest() -> None:
        async with store.transaction(), store.transaction():
            pass

    with pytest.raises(RuntimeError, match="inside"):
        await nest()
    async with store.transaction() as work:
        assert await work.keys.count() == 0


async def test_what_is_queued_when_the_store_closes_is_still_stored(url: str, database: Path) -> None:
    store = await Store.open(url)
    episodes = [an_episode() for _ in range(5)]

    async def add(index: int) -> None:
        async with store.transaction() as work:
            await work.episodes.add(episodes[index])

    tasks = [asyncio.create_task(add(index)) for index in range(5)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*tasks)
    assert len(stored(database)) == 5


async def test_a_closed_store_refuses_work(url: str) -> None:
    store = await Store.open(url)
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable):
        async with store.transaction():
            pass
    with pytest.raises(StoreUnavailable):
        await store.ping()


async def test_a_session_does_one_thing_at_a_time(store: Store) -> None:
    async with store.reading() as work:
        first = asyncio.ensure_future(work.keys.count())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="busy"):
            await work.keys.count()
        assert await first == 0


def test_sessions_do_not_begin_what_nobody_asked_for() -> None:
    assert not LaneSession(lane=None).began  # type: ignore[arg-type]
