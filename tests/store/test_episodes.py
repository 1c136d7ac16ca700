"""Episodes: what was stored comes back, in order, for its own lab alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from sqlalchemy.exc import IntegrityError

from reward_server.errors import TurnInProgress
from reward_server.store.records import EPISODE_LIFETIME, EpisodeRow, EpisodeStatus, PageEnd
from reward_server.store.store import Store
from tests.store.builders import NOW, a_turn, after_a_turn, an_episode


async def add(store: Store, *episodes: EpisodeRow) -> None:
    async with store.transaction() as work:
        for episode in episodes:
            await work.episodes.add(episode)


async def play(store: Store, episode: EpisodeRow) -> EpisodeRow:
    after = after_a_turn(episode)
    async with store.transaction() as work:
        await work.episodes.append_turn(after, a_turn(after))
    return after


async def test_an_episode_comes_back_as_it_was_stored(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    async with store.reading() as work:
        found = await work.episodes.get("acme", episode.episode_id)
    assert found == episode
    assert found.metadata is not None
    assert list(found.metadata) == ["z", "a"]
    assert found.created_at.utcoffset() == timedelta(0)


async def test_absent_values_come_back_as_none(store: Store) -> None:
    episode = an_episode(reward_config=None, metadata=None)
    await add(store, episode)
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) == episode


async def test_a_moment_of_another_zone_comes_back_in_utc(store: Store) -> None:
    episode = an_episode(created_at=NOW.astimezone(timezone(timedelta(hours=9))))
    await add(store, episode)
    async with store.reading() as work:
        found = await work.episodes.get("acme", episode.episode_id)
    assert found is not None
    assert found.created_at.isoformat() == NOW.isoformat()


async def test_another_lab_finds_neither_the_episode_nor_its_turns(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    await play(store, episode)
    async with store.reading() as work:
        assert await work.episodes.get("rival", episode.episode_id) is None
        assert await work.episodes.turns("rival", episode.episode_id) == []
        assert await work.episodes.page("rival", 10, now=NOW) == []


async def test_another_lab_cannot_append_a_turn(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    with pytest.raises(TurnInProgress):
        await play(store, replace(episode, lab_id="rival"))
    async with store.reading() as work:
        assert await work.episodes.turns("acme", episode.episode_id) == []


async def test_turns_come_back_in_order_with_the_state_after_the_last(store: Store) -> None:
    start = an_episode()
    await add(store, start)
    after = await play(store, await play(store, await play(store, start)))
    async with store.reading() as work:
        turns = await work.episodes.turns("acme", start.episode_id)
        found = await work.episodes.get("acme", start.episode_id)
    assert [turn.turn for turn in turns] == [1, 2, 3]
    assert turns[2] == a_turn(after)
    assert found == after


async def test_the_same_turn_cannot_be_stored_twice(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    after = await play(store, episode)
    with pytest.raises(TurnInProgress):
        await play(store, episode)
    async with store.reading() as work:
        assert await work.episodes.turns("acme", episode.episode_id) == [a_turn(after)]


async def test_a_turn_cannot_skip_one(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    with pytest.raises(TurnInProgress):
        await play(store, replace(episode, turn=1))


async def test_a_turn_that_fails_to_be_stored_leaves_the_episode_where_it_was(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    after = after_a_turn(episode)
    with pytest.raises(IntegrityError):
        async with store.transaction() as work:
            await work.episodes.append_turn(after, a_turn(after, observation=None))
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) == episode


async def test_a_finished_episode_takes_no_turn_and_is_finished_once(store: Store) -> None:
    episode = an_episode()
    await add(store, episode)
    finished = replace(episode, status=EpisodeStatus.COMPLETE, terminal_reason="client_terminated")
    async with store.transaction() as work:
        await work.episodes.finish(finished)
    with pytest.raises(TurnInProgress):
        await play(store, episode)
    with pytest.raises(TurnInProgress):
        async with store.transaction() as work:
            await work.episodes.finish(replace(finished, terminal_reason="error"))
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) == finished


async def test_pages_go_from_new_to_old_without_gap_or_overlap(store: Store) -> None:
    # Three of each age: the cursor has to break ties.
    episodes = [an_episode(created_at=NOW - timedelta(hours=i // 3)) for i in range(9)]
    await add(store, *episodes)
    wanted = sorted(episodes, key=lambda row: (row.created_at, row.episode_id), reverse=True)
    seen: list[EpisodeRow] = []
    cursor = None
    async with store.reading() as work:
        while page := await work.episodes.page("acme", 2, now=NOW, after=cursor):
            seen += page
            cursor = PageEnd(page[-1].created_at, page[-1].episode_id)
    assert seen == wanted


async def test_pages_can_be_of_one_collection(store: Store) -> None:
    other = an_episode(collection="tutoring")
    await add(store, an_episode(), other)
    async with store.reading() as work:
        assert await work.episodes.page("acme", 10, now=NOW, collections=["tutoring"]) == [other]
        assert await work.episodes.page("acme", 10, now=NOW, collections=[]) == []


async def test_turns_of_several_episodes_come_apart_and_in_order(store: Store) -> None:
    long, short, foreign = an_episode(), an_episode(), an_episode(lab_id="rival")
    await add(store, long, short, foreign)
    await play(store, await play(store, long))
    await play(store, foreign)
    async with store.reading() as work:
        found = await work.episodes.turns_of("acme", [short.episode_id, long.episode_id, foreign.episode_id])
        assert found[long.episode_id] == await work.episodes.turns("acme", long.episode_id)
    assert [turn.turn for turn in found[long.episode_id]] == [1, 2]
    assert found[short.episode_id] == found[foreign.episode_id] == []


@pytest.mark.parametrize("status", EpisodeStatus)
async def test_pages_by_status_agree_with_the_record(store: Store, status: EpisodeStatus) -> None:
    quiet_since = NOW - EPISODE_LIFETIME
    episodes = [
        an_episode(),
        an_episode(active_at=quiet_since),
        an_episode(active_at=quiet_since + timedelta(microseconds=1)),
        an_episode(active_at=quiet_since, status=EpisodeStatus.COMPLETE, terminal_reason="completed"),
    ]
    await add(store, *episodes)
    async with store.reading() as work:
        page = await work.episodes.page("acme", 10, now=NOW, status=status)
    wanted = {row.episode_id for row in episodes if row.status_at(NOW) is status}
    assert {row.episode_id for row in page} == wanted
    assert wanted


async def test_a_naive_moment_is_refused(store: Store) -> None:
    with pytest.raises(Exception, match="timezone-aware"):
        await add(store, an_episode(created_at=NOW.replace(tzinfo=None)))
