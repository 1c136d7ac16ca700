"""What language models decided: the first text under a key stays, many at a time, until it is purged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from reward_server.store.store import Store
from tests.store.builders import NOW


def key(number: int) -> str:
    return f"{number:064x}"


async def test_the_first_under_a_key_stays(store: Store) -> None:
    async with store.transaction() as work:
        await work.llm_answers.put_many({key(1): '{"a":1}', key(2): "2"}, NOW)
        await work.llm_answers.put_many({key(1): "other", key(3): "3"}, NOW)
        await work.llm_answers.put_many({}, NOW)
    async with store.reading() as work:
        found = await work.llm_answers.get_many([key(1), key(2), key(3), key(4)])
    assert found == {key(1): '{"a":1}', key(2): "2", key(3): "3"}


async def test_thousands_are_found_at_once(store: Store) -> None:
    bodies = {key(number): str(number) for number in range(2501)}
    async with store.transaction() as work:
        await work.llm_answers.put_many(bodies, NOW)
    async with store.reading() as work:
        assert await work.llm_answers.get_many(list(bodies)) == bodies
        assert await work.llm_answers.get_many([]) == {}


DAMAGES = ["x'ff00fe'", "x'7b'", "7", "''", "cast(x'5bff' as text)"]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_row_is_read_beside_the_others_and_can_be_replaced(store: Store, url: str, damage: str) -> None:
    async with store.transaction() as work:
        await work.llm_answers.put_many({key(1): "1", key(2): "2"}, NOW)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.execute(f"update llm_verdicts set body = {damage} where key = ?", (key(1),))
    async with store.reading() as work:
        found = await work.llm_answers.get_many([key(1), key(2)])
    assert found[key(2)] == "2"
    async with store.transaction() as work:
        await work.llm_answers.replace(key(1), found[key(1)], "new", NOW)
        await work.llm_answers.replace(key(1), found[key(1)], "too late", NOW)
        await work.llm_answers.replace(key(2), "what never was", "wrong", NOW)
        await work.llm_answers.replace(key(3), "", "nobody", NOW)
    async with store.reading() as work:
        assert await work.llm_answers.get_many([key(1), key(2), key(3)]) == {key(1): "new", key(2): "2"}


async def test_old_ones_are_forgotten(store: Store) -> None:
    async with store.transaction() as work:
        await work.llm_answers.put_many({key(1): "1"}, NOW - timedelta(days=2))
        await work.llm_answers.put_many({key(2): "2"}, NOW)
        assert await work.llm_answers.purge(NOW - timedelta(days=1)) == 1
        assert await work.llm_answers.get_many([key(1), key(2)]) == {key(2): "2"}
