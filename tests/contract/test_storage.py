"""What counts in a lab's storage and in what it lets be kept besides its conversations: its files."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reward_server.ids import IdPrefix, new_id
from reward_server.server.chores import purge_once
from reward_server.store.job_records import JobRow, JobStatus
from tests.contract.house import WHERE, Client, House, assert_error
from tests.contract.test_operators import limited, operator
from tests.store.test_job_purge import a_job

__all__ = ("operator",)  # a fixture
TALK = b'{"messages": [{"role": "assistant", "content": "How did it happen?"}]}\n'


def measured_anew(house: House) -> None:
    house.app.state.services.storage._measured.clear()


@pytest.mark.parametrize("folder", ["reward_models", "calibrations"])
async def test_learned_files_count_in_a_labs_storage(operator: Client, house: House, folder: str) -> None:
    shared: Path = getattr(house.settings, folder)
    for lab_id, size in (("acme", 60_000), ("rival", 10**6)):
        place = shared / "labs" / lab_id / "rm_1"
        place.mkdir(parents=True)
        (place / "heads.safetensors").write_bytes(bytes(size))
    async with house.client(await limited(operator, storage_mb=0.07)) as client:
        await client.create()
        (shared / "labs" / "acme" / "rm_1" / "card.json").write_bytes(bytes(10_000))
        measured_anew(house)
        assert_error(await client.call("POST", "/episodes", WHERE), 429, "storage_exhausted")
        await client.ok("GET", "/episodes")


async def test_who_has_stored_all_it_may_uploads_nothing(operator: Client, house: House) -> None:
    async with house.client(await limited(operator, storage_mb=0.0001)) as client:
        kept = await client.ok("POST", "/files", content=TALK * 4)
        measured_anew(house)
        assert_error(await client.call("POST", "/files", content=TALK), 429, "storage_exhausted")
        await client.ok("DELETE", f"/files/{kept['file_id']}")
        measured_anew(house)
        await client.ok("POST", "/files", content=TALK)


async def purge(house: House, learning: Path) -> None:
    """What the server does every hour."""
    await purge_once(house.store, house.clock, house.app.state.services.tenants, learning)


@pytest.fixture
def learning(house: House) -> Path:
    """The server's folder of what trainings have begun."""
    return house.settings.learning


def begun(house: House, learning: Path, lab_id: str, job_id: str, days: int) -> Path:
    """What a training has made so far, untouched for so many days."""
    place = learning / "labs" / lab_id / job_id
    place.mkdir(parents=True)
    (place / "rows.jsonl").write_bytes(TALK)
    moment = (house.clock.now() - timedelta(days=days)).timestamp()
    os.utime(place, (moment, moment))
    return place


async def test_rows_of_trainings_are_kept_no_longer_than_conversations(
    operator: Client, house: House, learning: Path
) -> None:
    await limited(operator, retention_days=7)
    old, new = begun(house, learning, "acme", "job_8", 8), begun(house, learning, "acme", "job_6", 6)
    others, oldest = begun(house, learning, "rival", "job_8", 8), begun(house, learning, "rival", "job_31", 31)
    await purge(house, learning)
    assert not old.exists()
    assert not oldest.exists()
    assert new.exists()
    assert others.exists()


@pytest.mark.parametrize("retention", [{"retention_days": 1}, {}], ids=["of the lab", "of the server"])
async def test_what_a_live_training_works_with_outlives_the_retention(
    operator: Client, house: House, learning: Path, retention: dict[str, int]
) -> None:
    key = await limited(operator, **retention)
    rows = b'{"reward": 0.5, "label": 1}\n' * 10
    async with house.client(key) as client:
        files = [(await client.ok("POST", "/files", content=rows))["file_id"] for _ in range(3)]
        live, over = [new_job(house, file_id) for file_id in files[:2]]
        async with house.store.transaction() as unit:
            await unit.jobs.add(live)
            await unit.jobs.add(over)
            await unit.jobs.cancel("acme", over.job_id, house.clock.now())
        kept, left = begun(house, learning, "acme", live.job_id, 31), begun(house, learning, "acme", over.job_id, 31)
        house.clock.advance(timedelta(days=40))
        await purge(house, learning)
        assert not left.exists()
        assert kept.exists()
        assert (await client.ok("GET", f"/jobs/{live.job_id}"))["status"] == "running"
        assert_error(await client.call("GET", f"/jobs/{over.job_id}"), 404, "job_not_found")
        left_files = {each["file_id"] for each in (await client.ok("GET", "/files"))["data"]}
        assert left_files == ({files[0]} if retention else set(files))
        # Once it is over, it goes as all others do, an age after its end.
        async with house.store.transaction() as unit:
            await unit.jobs.cancel("acme", live.job_id, house.clock.now())
        await client.ok("GET", f"/jobs/{live.job_id}")
        house.clock.advance(timedelta(days=40))
        await purge(house, learning)
        assert not kept.exists()
        assert_error(await client.call("GET", f"/jobs/{live.job_id}"), 404, "job_not_found")


def new_job(house: House, file_id: str) -> JobRow:
    """A job that is being done elsewhere: workers of this server take none of its type."""
    now = house.clock.now()
    return replace(
        a_job(1),
        job_id=new_id(IdPrefix.JOB),
        lab_id="acme",
        type="elsewhere",
        status=JobStatus.RUNNING,
        file_id=file_id,
        created_at=now,
        started_at=now,
    )
