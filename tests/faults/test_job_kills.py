"""Workers that are killed in the middle of a job: every item is scored once, and none is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from reward_server.auth.idempotency import fingerprint
from reward_server.auth.lab import DEVELOPMENT_LAB
from reward_server.clock import SystemClock
from reward_server.ids import IdPrefix, new_id
from reward_server.jobs.files import FileLimits, FileService
from reward_server.store.engine import sqlite_url
from reward_server.store.job_records import JobRow, JobStatus
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from tests.contract.test_learning_jobs import talks
from tests.faults.server_process import COLLECTIONS, ROOT, WHERE

LAB = DEVELOPMENT_LAB.lab_id
WAIT_S = 600.0
TALK = [
    {"role": "user", "content": "Hello, my bike has a flat tyre."},
    {"role": "assistant", "content": "Good morning. How did it happen?"},
    {"role": "user", "content": "I rode over broken glass behind the station."},
]


@contextmanager
def worker(folder: Path, database: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process; killed in the end if it still runs."""
    variables = {
        **os.environ,
        "LABS_SCENARIOS": str(COLLECTIONS),
        "LABS_DATABASE_URL": database,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        **environment,
    }
    with (folder / "worker.log").open("ab") as log:
        command = [sys.executable, "-m", "reward_server.cli.main", "worker", "--data", str(folder)]
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


async def submitted(
    store: Store, count: int, rows: Sequence[Mapping[str, object]] = (), job_type: str = "evaluate"
) -> JobRow:
    """A job of so many short conversations, or over these rows as one item; queued."""

    async def lines() -> AsyncIterator[bytes]:
        for number in range(count):
            yield json.dumps({"id": f"talk-{number}", "messages": TALK}).encode() + b"\n"
        for row in rows:
            yield json.dumps(row).encode() + b"\n"

    file = await FileService(store, SystemClock(), FileLimits()).store(DEVELOPMENT_LAB, "talks.jsonl", lines())
    job = JobRow(
        job_id=new_id(IdPrefix.JOB),
        lab_id=LAB,
        key_id=DEVELOPMENT_LAB.key_id,
        type=job_type,
        status=JobStatus.QUEUED,
        file_id=file.file_id,
        params={"training": {"epochs": 10, "features": "all"}} if rows else dict(WHERE),
        collections=None,
        full_scores=False,
        scopes=("score",),
        total=1 if rows else file.lines,
        created_at=SystemClock().now(),
    )
    async with store.transaction() as unit:
        await unit.jobs.add(job)
    return job


async def stands(store: Store, job: JobRow) -> JobRow:
    async with store.reading() as unit:
        found = await unit.jobs.get(LAB, job.job_id)
    assert found is not None
    return found


async def reaches(store: Store, job: JobRow, finished: int) -> JobRow:
    """The job as soon as so many items are finished."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = await stands(store, job)
        if found.finished_items >= finished:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"the job has only {found.finished_items} finished items")


async def survives(folder: Path, database: str, items: int, kills: int) -> None:
    store = await Store.open(database)
    try:
        job = await submitted(store, items)
        counted = [0]
        for kill in range(kills):
            with worker(folder, database) as process:
                counted.append((await reaches(store, job, (kill + 1) * items // (kills + 2))).finished_items)
                process.send_signal(signal.SIGKILL)
                process.wait()
        with worker(folder, database) as process:
            over = await reaches(store, job, items)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        assert counted == sorted(counted)
        assert (over.status, over.done, over.failed, over.dead) == (JobStatus.COMPLETED, items, 0, 0)
        await scored_once(store, job, items)
    finally:
        await store.close()


async def scored_once(store: Store, job: JobRow, items: int) -> None:
    """One result of every item, one evaluation of every result, and no evaluation besides."""
    results, after = [], -1
    async with store.reading() as unit:
        while page := await unit.jobs.results(LAB, job.job_id, after, 1000):
            results += [result for _, result in page]
            after = page[-1][0]
        evaluations = await unit.evaluations.of(LAB)
    assert [result["id"] for result in results] == [f"talk-{number}" for number in range(items)]
    assert Counter(each.evaluation_id for each in evaluations) == Counter(each["evaluation_id"] for each in results)
    assert len({fingerprint(each["reward"], each["scores"]) for each in results}) == 1


@pytest.mark.slow
async def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    database = sqlite_url(tmp_path / "labs.sqlite")
    await migrate(database)
    await survives(tmp_path, database, items=200, kills=1)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "labs.sqlite")
    return str(request.getfixturevalue("postgres_url"))


def errands_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Processes that a worker started."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def soon(happens: Callable[[], bool]) -> bool:
    """Whether it is so within a moment."""
    deadline = time.monotonic() + 30
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.1)
    return happens()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def stage(store: Store, job: JobRow, wanted: str) -> None:
    """Wait until a training is at it."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        async with store.reading() as unit:
            noted = await unit.jobs.noted(LAB, [job.job_id])
        if noted.get(job.job_id, {}).get("stage", "").startswith(wanted):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the training never was at {wanted}")


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_training_goes_on_where_its_killed_worker_stopped(database: str, tmp_path: Path) -> None:
    """The process that trained ends with its worker; features are kept; one model comes of it."""
    await migrate(database)
    store = await Store.open(database)
    try:
        job = await submitted(store, 0, rows=talks(60), job_type="train_reward_model")
        begun = tmp_path / "trainings" / "labs" / LAB
        with worker(tmp_path, database) as process:
            await stage(store, job, "encoding")
            [errand] = errands_of(process)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert await asyncio.to_thread(soon, lambda: not runs(errand))
        assert names_in(begun / job.job_id / "features")
        with worker(tmp_path, database):
            over = await reaches(store, job, 1)
            assert (over.status, over.done) == (JobStatus.COMPLETED, 1)
            assert await asyncio.to_thread(soon, lambda: names_in(begun) == [])
        async with store.reading() as unit:
            [(_, result)] = await unit.jobs.results(LAB, job.job_id, -1, 10)
        assert names_in(tmp_path / "reward-models" / "labs" / LAB) == [result["reward_model_id"]]
    finally:
        await store.close()


@pytest.mark.slow
async def test_ten_thousand_items_and_five_kills(database: str, tmp_path: Path) -> None:
    await migrate(database)
    await survives(tmp_path, database, items=10_000, kills=5)
