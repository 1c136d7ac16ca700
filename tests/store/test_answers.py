"""Stored answers: one per lab and key, for 24 hours."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reward_server.errors import Conflict
from reward_server.store.records import ANSWER_LIFETIME, StoredAnswer
from reward_server.store.store import Store
from tests.store.builders import NOW, an_answer, an_episode


async def put(store: Store, answer: StoredAnswer) -> None:
    async with store.transaction() as work:
        await work.answers.put(answer)


async def test_an_answer_comes_back_with_its_keys_in_order(store: Store) -> None:
    answer = an_answer()
    await put(store, answer)
    async with store.reading() as work:
        found = await work.answers.get("acme", "key-1", NOW)
    assert found == answer
    assert list(found.body) == ["z", "a"]


async def test_labs_do_not_share_keys(store: Store) -> None:
    await put(store, an_answer())
    await put(store, an_answer(lab_id="rival", body={"own": True}))
    async with store.reading() as work:
        assert await work.answers.get("other", "key-1", NOW) is None
        found = await work.answers.get("rival", "key-1", NOW)
    assert found is not None
    assert found.body == {"own": True}


async def test_an_answer_lives_for_its_lifetime_and_no_longer(store: Store) -> None:
    await put(store, an_answer())
    async with store.reading() as work:
        last_moment = NOW + ANSWER_LIFETIME - timedelta(microseconds=1)
        assert await work.answers.get("acme", "key-1", last_moment) is not None
        assert await work.answers.get("acme", "key-1", NOW + ANSWER_LIFETIME) is None


async def test_an_expired_key_can_be_used_again(store: Store) -> None:
    await put(store, an_answer())
    fresh = an_answer(fingerprint="e" * 64, created_at=NOW + ANSWER_LIFETIME)
    await put(store, fresh)
    async with store.reading() as work:
        assert await work.answers.get("acme", "key-1", fresh.created_at) == fresh


async def test_a_key_that_was_just_used_undoes_the_whole_transaction(store: Store) -> None:
    await put(store, an_answer())
    episode = an_episode()

    async def add_both() -> None:
        async with store.transaction() as work:
            await work.episodes.add(episode)
            await work.answers.put(an_answer(body={"other": 1}))

    with pytest.raises(Conflict):
        await add_both()
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) is None
        assert await work.answers.get("acme", "key-1", NOW) == an_answer()


async def test_purging_forgets_what_is_too_old_and_nothing_else(store: Store) -> None:
    young = an_answer(key="young", created_at=NOW + timedelta(seconds=1))
    await put(store, an_answer(key="old"))
    await put(store, young)
    async with store.transaction() as work:
        assert await work.answers.purge(NOW + ANSWER_LIFETIME) == 1
        assert await work.answers.purge(NOW + ANSWER_LIFETIME) == 0
    async with store.reading() as work:
        assert await work.answers.get("acme", "young", NOW) == young
