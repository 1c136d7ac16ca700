"""What language models decided: the first text under a key stays, many at a time, until it is purged."""

from __future__ import annotations

from datetime import timedelta

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


async def test_old_ones_are_forgotten(store: Store) -> None:
    async with store.transaction() as work:
        await work.llm_answers.put_many({key(1): "1"}, NOW - timedelta(days=2))
        await work.llm_answers.put_many({key(2): "2"}, NOW)
        assert await work.llm_answers.purge(NOW - timedelta(days=1)) == 1
        assert await work.llm_answers.get_many([key(1), key(2)]) == {key(2): "2"}
