"""Evaluations and comparisons: kept whole, and the windows that rewards are normalised over."""

from __future__ import annotations

import statistics
from datetime import timedelta

import pytest

from reward_server.store.records import EvaluationRow, EvaluationSource, Stats
from reward_server.store.store import Store
from tests.store.builders import NOW, a_comparison, an_evaluation


async def add(store: Store, *rows: EvaluationRow) -> None:
    async with store.transaction() as work:
        await work.evaluations.add_many(rows)


async def test_an_evaluation_comes_back_for_its_lab_alone(store: Store) -> None:
    row = an_evaluation(source=EvaluationSource.BATCH)
    await add(store, row, an_evaluation())
    async with store.reading() as work:
        assert await work.evaluations.get("acme", row.evaluation_id) == row
        assert await work.evaluations.get("rival", row.evaluation_id) is None


async def test_adding_none_is_fine(store: Store) -> None:
    await add(store)
    async with store.reading() as work:
        assert await work.evaluations.window("acme", "run-1") == Stats(n=0, mean=0.0, std=0.0)


async def test_a_comparison_comes_back_for_its_lab_alone(store: Store) -> None:
    row = a_comparison()
    async with store.transaction() as work:
        await work.comparisons.add(row)
    async with store.reading() as work:
        assert await work.comparisons.get("acme", row.comparison_id) == row
        assert await work.comparisons.get("rival", row.comparison_id) is None


async def test_a_window_has_the_spread_of_the_population(store: Store) -> None:
    rewards = [0.1, 0.4, 0.35, 0.8]
    await add(store, *(an_evaluation(reward=reward) for reward in rewards))
    async with store.reading() as work:
        stats = await work.evaluations.window("acme", "run-1")
    assert stats.n == 4
    assert stats.mean == pytest.approx(statistics.fmean(rewards))
    assert stats.std == pytest.approx(statistics.pstdev(rewards))


async def test_equal_rewards_have_no_spread_at_all(store: Store) -> None:
    await add(store, *(an_evaluation(reward=0.1) for _ in range(10)))
    async with store.reading() as work:
        assert await work.evaluations.window("acme", "run-1") == Stats(n=10, mean=0.1, std=0.0)


async def test_a_small_spread_on_a_large_mean_is_not_lost(store: Store) -> None:
    rewards = [0.9999, 1.0] * 500
    await add(store, *(an_evaluation(reward=reward) for reward in rewards))
    async with store.reading() as work:
        stats = await work.evaluations.window("acme", "run-1")
    assert stats.std == pytest.approx(0.00005, rel=1e-9)


async def test_a_window_of_time_includes_its_first_moment(store: Store) -> None:
    await add(
        store,
        an_evaluation(reward=0.1, created_at=NOW - timedelta(days=1, microseconds=1)),
        an_evaluation(reward=0.2, created_at=NOW - timedelta(days=1)),
        an_evaluation(reward=0.4, created_at=NOW),
    )
    async with store.reading() as work:
        stats = await work.evaluations.window("acme", "run-1", since=NOW - timedelta(days=1))
    assert (stats.n, stats.mean) == (2, pytest.approx(0.3))


async def test_a_window_of_the_last_few_takes_the_newest(store: Store) -> None:
    await add(store, *(an_evaluation(reward=i / 10, created_at=NOW + timedelta(seconds=i)) for i in range(10)))
    async with store.reading() as work:
        stats = await work.evaluations.window("acme", "run-1", last=3)
        both = await work.evaluations.window("acme", "run-1", last=3, since=NOW + timedelta(seconds=8))
    assert (stats.n, stats.mean) == (3, pytest.approx(0.8))
    assert (both.n, both.mean) == (2, pytest.approx(0.85))


async def test_a_window_sees_one_key_of_one_lab(store: Store) -> None:
    await add(
        store,
        an_evaluation(reward=0.5),
        an_evaluation(reward=0.9, normalization_key="run-2"),
        an_evaluation(reward=0.9, normalization_key=None),
        an_evaluation(reward=0.9, lab_id="rival"),
    )
    async with store.reading() as work:
        assert await work.evaluations.window("acme", "run-1") == Stats(n=1, mean=0.5, std=0.0)


async def test_plain_rewards_are_those_of_one_version_that_nobody_weighted(store: Store) -> None:
    async with store.reading() as work:
        assert await work.evaluations.plain_versions() == {}
    later = NOW + timedelta(seconds=1)
    await add(
        store,
        an_evaluation(reward=0.1),
        an_evaluation(reward=0.2, lab_id="rival", reward_config={}),
        an_evaluation(reward=0.9, reward_config={"risk_aversion": 1.0}),
        an_evaluation(reward=0.3, scoring_version="sv_ba9876543210", created_at=later),
        an_evaluation(scoring_version="sv_000000000000", reward_config={"risk_aversion": 1.0}, created_at=later),
    )
    async with store.reading() as work:
        assert sorted(await work.evaluations.plain_rewards("sv_0123456789ab")) == [0.1, 0.2]
        assert await work.evaluations.plain_rewards("sv_0123456789ab", "rival") == [0.2]
        versions = await work.evaluations.plain_versions()
    assert next(iter(versions)) == ("acme", "sv_ba9876543210")
    older = "sv_0123456789ab"
    assert versions == {("acme", "sv_ba9876543210"): 1, ("acme", older): 1, ("rival", older): 1}
