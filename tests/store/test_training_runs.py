"""Training runs and their metrics, on both engines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reward_server.ids import IdPrefix, new_id
from reward_server.store.records import PageEnd
from reward_server.store.store import Store
from reward_server.store.training_records import OPEN_RUNS, MetricPlace, MetricRow, RunStatus, TrainingRunRow
from tests.store.builders import NOW

ODD = {"server": {"system": "ü\u2028"}, "optim": {"learning_rate": 1e-17}, "a": []}


def a_run(**changes: Any) -> TrainingRunRow:
    row = TrainingRunRow(
        training_run_id=new_id(IdPrefix.TRAINING_RUN),
        lab_id="acme",
        status=RunStatus.QUEUED,
        name="first",
        config=ODD,
        client_metadata={"z": 1, "a": None},
        steps=60,
        created_at=NOW,
    )
    return replace(row, **changes)


def a_metric(step: int, kind: str = "train", **values: float) -> MetricRow:
    return MetricRow(step=step, kind=kind, record={"kind": kind, "step": step, **values})


@pytest.fixture
def store(store_on_both: Store) -> Store:
    return store_on_both


async def added(store: Store, *rows: TrainingRunRow) -> None:
    async with store.transaction() as unit:
        for row in rows:
            await unit.training_runs.add(row)


async def metrics(store: Store, run: TrainingRunRow, after: MetricPlace, limit: int = 100) -> list[MetricRow]:
    async with store.reading() as unit:
        return await unit.training_runs.metrics(run.lab_id, run.training_run_id, after, limit)


async def test_a_run_comes_back_as_it_went_in_to_its_lab_alone(store: Store) -> None:
    run = a_run()
    await added(store, run)
    async with store.reading() as unit:
        found = await unit.training_runs.get("acme", run.training_run_id)
        assert await unit.training_runs.get("rival", run.training_run_id) is None
        assert await unit.training_runs.metrics("rival", run.training_run_id, MetricPlace(-1), 9) == []
    assert found == run
    assert str(found.config) == str(ODD)


async def test_pages_have_the_newest_first_and_may_be_of_one_status(store: Store) -> None:
    runs = [a_run(created_at=NOW + timedelta(seconds=number)) for number in range(3)]
    over = replace(runs[1], status=RunStatus.COMPLETE)
    await added(store, runs[0], over, runs[2], a_run(lab_id="rival"))
    async with store.reading() as unit:
        first = await unit.training_runs.page("acme", 2)
        rest = await unit.training_runs.page(
            "acme", 2, after=PageEnd(created_at=over.created_at, id=over.training_run_id)
        )
        assert await unit.training_runs.page("acme", 9, status=RunStatus.COMPLETE) == [over]
        assert await unit.training_runs.count("acme", OPEN_RUNS) == 2
    assert (first, rest) == ([runs[2], over], [runs[0]])


async def test_a_page_for_some_collections_has_what_was_made_with_no_others(store: Store) -> None:
    made = [None, [], ["a"], ["b"], ["a", "b"], ["b", "it's"], ["a"]]
    runs = [a_run(collections=each, created_at=NOW + timedelta(seconds=n)) for n, each in enumerate(made)]
    await added(store, *runs, a_run(lab_id="rival", collections=["a"]))

    async def page(limit: int, *collections: str, after: PageEnd | None = None) -> list[int]:
        async with store.reading() as unit:
            found = await unit.training_runs.page("acme", limit, after, collections=collections)
        return [runs.index(run) for run in found]

    assert await page(9, "a") == [6, 2, 1]
    assert await page(9, "a", "b") == [6, 4, 3, 2, 1]
    assert await page(9, "b", "it's") == [5, 3, 1]
    assert await page(9) == [1]
    assert await page(1, "a") == [6]
    assert await page(1, "a", after=PageEnd(runs[6].created_at, runs[6].training_run_id)) == [2]


async def test_a_run_moves_only_from_where_it_should_stand(store: Store) -> None:
    run = a_run()
    await added(store, run)
    own = ("acme", run.training_run_id)
    async with store.transaction() as unit:
        runs = unit.training_runs
        assert not await runs.move(*own, (RunStatus.RUNNING,), {"status": RunStatus.STOPPING})
        assert not await runs.move("rival", own[1], OPEN_RUNS, {"status": RunStatus.STOPPED})
        assert await runs.move(*own, OPEN_RUNS, {"status": RunStatus.RUNNING, "step": 3, "reward": 0.25})
        assert not await runs.delete(*own)
        assert await runs.move(*own, OPEN_RUNS, {"status": RunStatus.FAILED, "error": "no"})
        assert not await runs.delete("rival", own[1])
        assert await runs.delete(*own)
    async with store.reading() as unit:
        assert await unit.training_runs.ids() == set()


async def test_a_record_replaces_the_one_of_its_step_and_kind_and_pages_split_a_step(store: Store) -> None:
    run = a_run()
    await added(store, run)
    own = ("acme", run.training_run_id)
    async with store.transaction() as unit:
        await unit.training_runs.add_metrics(*own, [])
        await unit.training_runs.add_metrics(*own, [a_metric(0, "eval"), a_metric(1), a_metric(1, "eval"), a_metric(2)])
        await unit.training_runs.add_metrics(*own, [a_metric(2, value=0.1 + 0.2)])
    whole = await metrics(store, run, MetricPlace(-1))
    assert [(each.step, each.kind) for each in whole] == [(0, "eval"), (1, "train"), (1, "eval"), (2, "train")]
    assert whole[-1] == a_metric(2, value=0.1 + 0.2)
    page = await metrics(store, run, MetricPlace(-1), 2)
    assert page + await metrics(store, run, MetricPlace(page[-1].step, page[-1].kind)) == whole
    assert [each.step for each in await metrics(store, run, MetricPlace(1))] == [2]


async def test_records_that_were_not_kept_are_forgotten_and_all_go_with_their_run(store: Store) -> None:
    run = a_run(status=RunStatus.STOPPED)
    await added(store, run)
    own = ("acme", run.training_run_id)
    async with store.transaction() as unit:
        await unit.training_runs.add_metrics(*own, [a_metric(step) for step in range(4)])
        await unit.training_runs.rewind(*own, 1)
    assert [each.step for each in await metrics(store, run, MetricPlace(-1))] == [0, 1]
    async with store.transaction() as unit:
        await unit.training_runs.delete(*own)
    assert await metrics(store, run, MetricPlace(-1)) == []


async def test_runs_are_kept_as_long_as_their_lab_says_and_open_ones_longer(store: Store) -> None:
    old = NOW - timedelta(days=9)
    ended, begun = a_run(created_at=old, status=RunStatus.COMPLETE, finished_at=old), a_run(created_at=old)
    late = a_run(created_at=old, status=RunStatus.COMPLETE, finished_at=NOW)
    await added(store, ended, begun, late)
    async with store.transaction() as unit:
        await unit.training_runs.add_metrics("acme", ended.training_run_id, [a_metric(1)])
        assert await unit.disposal.delete("acme", before=NOW - timedelta(days=1)) == {"training_run": 1}
        assert await unit.training_runs.ids() == {begun.training_run_id, late.training_run_id}
    async with store.transaction() as unit:
        assert (await unit.disposal.delete("acme"))["training_run"] == 2
