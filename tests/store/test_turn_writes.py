"""Turns that are stored together: what each of them is told, and that none takes another along."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import Conflict, StoreUnavailable, TurnInProgress
from reward_server.store.records import EpisodeRow, TurnRow
from reward_server.store.store import Store
from reward_server.store.turn_writes import GROUP_LIMIT
from reward_server.store.unit_of_work import UnitOfWork
from tests.store.builders import a_turn, after_a_turn, an_answer, an_episode

MANY = GROUP_LIMIT + 10


@pytest.fixture
def store(store_on_both: Store) -> Store:
    return store_on_both


async def episodes_of(store: Store, count: int = MANY) -> list[EpisodeRow]:
    rows = [an_episode(episode_id=f"ep_{number}", lab_id=f"lab-{number % 3}") for number in range(count)]
    async with store.transaction() as work:
        await work.episodes.add(*rows)
    return rows


async def told(store: Store, played: list[tuple[EpisodeRow, TurnRow]]) -> list[BaseException | None]:
    return await asyncio.gather(*(store.append_turns([each]) for each in played), return_exceptions=True)


async def turns_of(store: Store, row: EpisodeRow) -> list[TurnRow]:
    async with store.reading() as work:
        return await work.episodes.turns(row.lab_id, row.episode_id)


def a_turn_of(row: EpisodeRow, **changes: object) -> tuple[EpisodeRow, TurnRow]:
    after = after_a_turn(row)
    return after, a_turn(after, **changes)


async def test_many_turns_are_stored_as_they_are(store: Store) -> None:
    played = [a_turn_of(row, observation=f"ü {row.episode_id}") for row in await episodes_of(store)]
    assert await told(store, played) == [None] * MANY
    async with store.reading() as work:
        for after, turn in played:
            assert await work.episodes.get(after.lab_id, after.episode_id) == after
            assert await work.episodes.turns(after.lab_id, after.episode_id) == [turn]


async def test_turns_of_one_episode_have_one_winner_a_place(store: Store) -> None:
    [row] = await episodes_of(store, 1)
    found = await told(store, [a_turn_of(row, observation=str(number)) for number in range(20)])
    assert sorted(type(each).__name__ for each in found) == ["NoneType", *["TurnInProgress"] * 19]
    assert [turn.observation for turn in await turns_of(store, row)] == [str(found.index(None))]


async def test_an_episode_that_has_moved_or_is_of_another_lab_is_left_alone(store: Store) -> None:
    rows = await episodes_of(store, 6)
    await store.append_turns([a_turn_of(rows[0])])
    played = [a_turn_of(row) for row in rows]
    played[1] = (replace(played[1][0], lab_id="another"), played[1][1])
    found = await told(store, played)
    assert [type(each) for each in found[:2]] == [TurnInProgress, TurnInProgress]
    assert found[2:] == [None] * 4
    assert [len(await turns_of(store, row)) for row in rows] == [1, 0, 1, 1, 1, 1]


async def test_a_turn_that_the_database_refuses_takes_nobody_along(store: Store) -> None:
    rows = await episodes_of(store, 5)
    played = [a_turn_of(row, **({"observation": None} if number == 2 else {})) for number, row in enumerate(rows)]
    found = await told(store, played)
    assert isinstance(found.pop(2), SQLAlchemyError)
    assert found == [None] * 4
    assert [len(await turns_of(store, row)) for row in rows] == [1, 1, 0, 1, 1]


async def test_a_turn_and_its_answer_are_stored_together_or_not_at_all(store: Store) -> None:
    rows = await episodes_of(store, 5)
    async with store.transaction() as work:
        await work.answers.put(an_answer(key="key-2"))

    def with_answer(number: int) -> asyncio.Future[None]:
        async def keep(unit: UnitOfWork) -> None:
            await unit.answers.put(an_answer(key=f"key-{number}"))

        return asyncio.ensure_future(store.append_turns([a_turn_of(rows[number])], keep))

    found = await asyncio.gather(*map(with_answer, range(5)), return_exceptions=True)
    assert isinstance(found.pop(2), Conflict)
    assert found == [None] * 4
    assert [len(await turns_of(store, row)) for row in rows] == [1, 1, 0, 1, 1]


async def test_a_turn_that_nobody_waits_for_any_more_is_not_stored(store: Store) -> None:
    rows = await episodes_of(store, 4)
    gone = asyncio.create_task(store.append_turns([a_turn_of(rows[0])]))
    await asyncio.sleep(0)
    gone.cancel()
    assert await told(store, [a_turn_of(row) for row in rows[1:]]) == [None] * 3
    assert [len(await turns_of(store, row)) for row in rows] == [0, 1, 1, 1]


async def test_what_waits_is_stored_before_the_store_closes(store: Store) -> None:
    rows = await episodes_of(store)
    waiting = [asyncio.create_task(store.append_turns([a_turn_of(row)])) for row in rows]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*waiting) == [None] * MANY
    with pytest.raises(StoreUnavailable):
        await store.append_turns([a_turn_of(rows[0])])


async def test_turns_of_one_request_are_stored_all_or_none_and_take_nobody_along(store: Store) -> None:
    rows = await episodes_of(store, 6)
    await store.append_turns([a_turn_of(rows[1])])
    requests = [[rows[0], rows[1]], [rows[2], rows[3]], [rows[4]]]
    found = await asyncio.gather(
        *(store.append_turns([a_turn_of(row) for row in each]) for each in requests), return_exceptions=True
    )
    assert [type(each).__name__ for each in found] == ["TurnInProgress", "NoneType", "NoneType"]
    assert [len(await turns_of(store, row)) for row in rows] == [0, 1, 1, 1, 1, 0]
    assert found[1:] == [None, None]
    async with store.reading() as work:
        assert await work.episodes.get(rows[0].lab_id, rows[0].episode_id) == rows[0]
