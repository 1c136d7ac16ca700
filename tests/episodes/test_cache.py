"""What is kept of episodes in play: bounded, only what is still active, and only where the server is alone."""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from reward_server.episodes import cache
from reward_server.episodes.cache import EpisodeCache, LoadedEpisode
from reward_server.store.records import EpisodeRow, EpisodeStatus
from tests.store.builders import a_turn, after_a_turn, an_episode

TEXT = "How long have you had it, and does it get worse at night? " * 3


def after_turns(episode: EpisodeRow, count: int) -> LoadedEpisode:
    loaded = LoadedEpisode(episode, ())
    for _ in range(count):
        after = after_a_turn(loaded.row)
        loaded = loaded.with_turn(after, a_turn(after, agent_content=TEXT, observation=TEXT[1:]))
    return loaded


@pytest.fixture
def kept() -> EpisodeCache:
    return EpisodeCache(kept=True)


def test_what_was_stored_is_found_without_its_answers(kept: EpisodeCache) -> None:
    loaded = after_turns(an_episode(), 3)
    kept.keep(loaded)
    found = kept.find("acme", loaded.row.episode_id)
    assert found == replace(loaded, turns=tuple(replace(turn, answer={}) for turn in loaded.turns))


def test_another_labs_episode_is_not_found(kept: EpisodeCache) -> None:
    loaded = after_turns(an_episode(), 1)
    kept.keep(loaded)
    assert kept.find("other", loaded.row.episode_id) is None
    assert not kept.forget("other", loaded.row.episode_id)
    assert kept.forget("acme", loaded.row.episode_id)
    assert kept.find("acme", loaded.row.episode_id) is None


def test_where_others_write_too_nothing_is_kept() -> None:
    shared = EpisodeCache(kept=False)
    loaded = after_turns(an_episode(), 1)
    shared.keep(loaded)
    assert shared.find("acme", loaded.row.episode_id) is None
    assert shared.held_bytes == 0


def test_an_episode_that_is_over_is_forgotten(kept: EpisodeCache) -> None:
    loaded = after_turns(an_episode(), 1)
    kept.keep(loaded)
    kept.keep(replace(loaded, row=replace(loaded.row, status=EpisodeStatus.COMPLETE)))
    assert kept.find("acme", loaded.row.episode_id) is None
    assert kept.held_bytes == 0


def test_all_of_a_lab_can_be_forgotten_and_nobody_elses(kept: EpisodeCache) -> None:
    own = [after_turns(an_episode(), 1) for _ in range(3)]
    others = after_turns(an_episode(lab_id="other"), 1)
    for loaded in (*own, others):
        kept.keep(loaded)
    kept.forget_lab("acme")
    assert [kept.find("acme", loaded.row.episode_id) for loaded in own] == [None] * 3
    assert kept.find("other", others.row.episode_id) is not None


def test_their_number_is_bounded_and_the_longest_unused_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_EPISODES", 3)
    few = EpisodeCache(kept=True)
    rows = [an_episode() for _ in range(4)]
    for row in rows[:3]:
        few.keep(LoadedEpisode(row, ()))
    few.find("acme", rows[0].episode_id)
    few.keep(LoadedEpisode(rows[3], ()))
    assert [few.find("acme", row.episode_id) is not None for row in rows] == [True, False, True, True]


def test_their_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 200_000)
    little = EpisodeCache(kept=True)
    rows = [an_episode() for _ in range(50)]
    for row in rows:
        little.keep(after_turns(row, 2))
        assert little.held_bytes <= 200_000
    assert 5 < sum(little.find("acme", row.episode_id) is not None for row in rows) < 50
    huge = an_episode(metadata={"note": "n" * 100_000})
    little.keep(LoadedEpisode(huge, ()))
    assert little.find("acme", huge.episode_id) is None


@pytest.mark.parametrize("turns", [0, 1, 10])
@pytest.mark.parametrize("metadata", [None, {"run": [{"step": number} for number in range(200)]}])
def test_the_size_is_about_what_it_takes(kept: EpisodeCache, turns: int, metadata: Any) -> None:
    loaded = after_turns(an_episode(metadata=metadata), turns)
    kept.keep(loaded)
    found = kept.find("acme", loaded.row.episode_id)
    # Personas remember more than that of the builder: their state takes four to five kilobytes.
    taken = size_of(found, set()) + 4_500
    assert 0.6 < kept.held_bytes / taken < 2.5


def size_of(value: Any, seen: set[int]) -> int:
    """What an object and all that it refers to takes."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        parts = list(value)
    elif is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    return sys.getsizeof(value) + sum(size_of(part, seen) for part in parts)
