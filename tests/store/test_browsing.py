"""Episodes and evaluations as people look for them, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reward_server.store import browsing
from reward_server.store.browsing import BrowseFilter, Order
from reward_server.store.records import EPISODE_LIFETIME, EpisodeRow, EpisodeStatus, PageEnd
from reward_server.store.store import Store
from tests.store.builders import NOW, a_turn, after_a_turn, an_episode, an_evaluation

LATER = NOW + timedelta(hours=1)


async def keep(store: Store, minutes: int = 0, *, turns: tuple[dict[str, Any], ...] = ({},), **fields: Any) -> str:
    """An episode that began so many minutes after the others, with these turns."""
    moment = NOW + timedelta(minutes=minutes)
    episode: EpisodeRow = an_episode(**{"created_at": moment, "active_at": moment, **fields})
    async with store.transaction() as unit:
        await unit.episodes.add(episode)
        for each in turns:
            episode = after_a_turn(episode)
            answer = {"scoring_version": "sv_1", **({"capped_by": each["caps"]} if "caps" in each else {})}
            changes = {name: value for name, value in each.items() if name != "caps"}
            await unit.episodes.append_turn(episode, a_turn(episode, answer=answer, **changes))
    return episode.episode_id


async def found(store: Store, lab_id: str = "acme", limit: int = 50, **wanted: Any) -> list[str]:
    page = {name: wanted.pop(name) for name in ("after", "skip") if name in wanted}
    async with store.reading() as unit:
        rows = await unit.browsing.episodes(lab_id, BrowseFilter(**wanted), limit, now=LATER, **page)
    return [row.id for row in rows]


async def test_what_is_listed_is_what_the_last_turn_came_to(store_on_both: Store) -> None:
    turns = ({"reward": 0.1, "agent_content": "First."}, {"reward": 0.7, "scores": {"D1_A": 0.2}, "caps": ["scope"]})
    episode = await keep(store_on_both, turns=turns)
    begun = await keep(store_on_both, 1, turns=())
    async with store_on_both.reading() as unit:
        rows = await unit.browsing.episodes("acme", BrowseFilter(), 9, now=LATER)
        lengths = await unit.browsing.lengths("acme", [episode, begun])
    assert [row.id for row in rows] == [begun, episode]
    played = rows[1]
    assert (played.reward, played.scores, list(played.capped_by)) == (0.7, {"D1_A": 0.2}, ["scope"])
    assert (played.turns, played.scoring_version, played.first) == (2, "sv_1", "First.")
    assert (rows[0].reward, rows[0].scoring_version, list(rows[0].capped_by)) == (None, None, [])
    assert lengths == {episode: len("First.") + len("How long have you had it?")}


async def test_filters(store_on_both: Store) -> None:
    low = await keep(store_on_both, 0, turns=({"reward": 0.1, "agent_content": "100 % _sure_"},))
    high = await keep(store_on_both, 1, scenario="fever", turns=({"reward": 0.9, "caps": ["scope", "injection"]},))
    other = await keep(
        store_on_both, 2, collection="tutoring", opening="An Apple?", turns=({"reward": 0.5, "caps": []},)
    )
    everything = [other, high, low]
    for wanted, expected in (
        ({}, everything),
        ({"collections": ["clinical-intake"]}, [high, low]),
        ({"collections": []}, []),
        ({"scenario": "fever"}, [high]),
        ({"least": 0.5}, [other, high]),
        ({"most": 0.5}, [other, low]),
        ({"capped_by": "injection"}, [high]),
        ({"capped_by": "stuffing"}, []),
        ({"text": "% _SURE"}, [low]),
        ({"text": "100%"}, []),
        ({"text": "apple"}, [other]),
        ({"text": "three weeks"}, everything),
        ({"since": NOW + timedelta(minutes=1)}, [other, high]),
        ({"until": NOW + timedelta(minutes=1)}, [low]),
        ({"agent_id": "agent_x"}, []),
        ({"order": Order.HIGHEST}, [high, other, low]),
        ({"order": Order.LOWEST}, [low, other, high]),
    ):
        assert await found(store_on_both, **wanted) == expected, wanted
    assert await found(store_on_both, lab_id="rival") == []


async def test_status_follows_from_the_time(store_on_both: Store) -> None:
    old = await keep(store_on_both, -int(EPISODE_LIFETIME.total_seconds() // 60))
    active = await keep(store_on_both)
    over = await keep(store_on_both, 1, turns=(), status=EpisodeStatus.COMPLETE, terminal_reason="completed")
    assert await found(store_on_both, status=EpisodeStatus.EXPIRED) == [old]
    assert await found(store_on_both, status=EpisodeStatus.ACTIVE) == [active]
    assert await found(store_on_both, status=EpisodeStatus.COMPLETE) == [over]


async def test_pages_and_neighbours(store_on_both: Store) -> None:
    ids = [await keep(store_on_both, minutes) for minutes in range(4)][::-1]
    end = PageEnd(NOW + timedelta(minutes=2), ids[1])
    assert await found(store_on_both, limit=2) == ids[:2]
    assert await found(store_on_both, limit=2, after=end) == ids[2:]
    assert await found(store_on_both, limit=2, skip=1, order=Order.LOWEST) == ids[1:3]
    async with store_on_both.reading() as unit:
        assert await unit.browsing.neighbours("acme", None, end) == (ids[0], ids[2])
        assert await unit.browsing.neighbours("acme", ["tutoring"], end) == (None, None)
        assert await unit.browsing.neighbours("rival", None, end) == (None, None)


async def test_evaluations(store_on_both: Store) -> None:
    said = [{"role": "assistant", "content": "About Marmalade."}]
    rows = [
        an_evaluation(reward=0.2, messages=said, answer={"capped_by": ["scope"]}),
        an_evaluation(reward=0.8, created_at=NOW + timedelta(minutes=1), answer=None),
        an_evaluation(lab_id="rival", messages=said),
    ]
    async with store_on_both.transaction() as unit:
        await unit.evaluations.add_many(rows)
    async with store_on_both.reading() as unit:
        for wanted, expected in (
            (BrowseFilter(), [rows[1], rows[0]]),
            (BrowseFilter(text="marmalade"), [rows[0]]),
            (BrowseFilter(capped_by="scope"), [rows[0]]),
            (BrowseFilter(least=0.5), [rows[1]]),
            (BrowseFilter(source="job"), []),
            (BrowseFilter(order=Order.LOWEST), [rows[0], rows[1]]),
        ):
            listed = await unit.browsing.evaluations("acme", wanted, 9)
            assert [each.id for each in listed] == [each.evaluation_id for each in expected], wanted


async def test_the_newest_finished_stand_in_groups(store_on_both: Store) -> None:
    ids: list[str] = []
    for minutes, seed in enumerate((1, 2, 1, 2)):
        episode = await keep(store_on_both, minutes, seed=seed, turns=())
        ids.append(episode)
        async with store_on_both.transaction() as unit:
            row = await unit.episodes.get("acme", episode)
            assert row is not None
            after = after_a_turn(row, status=EpisodeStatus.COMPLETE, terminal_reason="completed")
            await unit.episodes.append_turn(after, a_turn(after))
    async with store_on_both.reading() as unit:
        found = await unit.browsing.newest_finished("acme", 3)
        assert await unit.browsing.newest_finished("acme", 3, collections=["tutoring"]) == []
        assert await unit.browsing.newest_finished("rival", 3) == []
    assert [each.episode_id for each in found] == [ids[2], ids[1], ids[3]]


async def test_a_search_looks_at_the_newest_and_dates_reach_further_back(
    store_on_both: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "LOOKED_THROUGH", 2)
    ids = [await keep(store_on_both, minutes, turns=({"reward": 0.9 - minutes / 10},)) for minutes in range(4)]
    until = NOW + timedelta(minutes=2)
    assert await found(store_on_both, order=Order.HIGHEST) == [ids[2], ids[3]]
    assert await found(store_on_both, order=Order.HIGHEST, until=until) == [ids[0], ids[1]]
    assert await found(store_on_both, text="three weeks") == [ids[3], ids[2]]
    assert await found(store_on_both, text="three weeks", until=until) == [ids[1], ids[0]]
    assert await found(store_on_both) == ids[::-1]
    # A page that goes on looks at as many again.
    end = PageEnd(NOW + timedelta(minutes=2), ids[2])
    assert await found(store_on_both, least=0.1, after=end) == [ids[1], ids[0]]
    rows = [an_evaluation(reward=0.9 - n / 10, created_at=NOW + timedelta(minutes=n)) for n in range(3)]
    async with store_on_both.transaction() as unit:
        await unit.evaluations.add_many(rows)
    async with store_on_both.reading() as unit:
        listed = await unit.browsing.evaluations("acme", BrowseFilter(order=Order.HIGHEST), 9)
    assert [each.id for each in listed] == [rows[1].evaluation_id, rows[2].evaluation_id]
