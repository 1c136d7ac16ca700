"""What counts in a lab's storage and in what it lets be kept besides its conversations: its files."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from reward_server.assembly.chores import purge
from tests.contract.house import WHERE, Client, House, assert_error
from tests.contract.test_operators import limited, operator

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


async def test_rows_of_trainings_are_kept_no_longer_than_conversations(operator: Client, house: House) -> None:
    await limited(operator, retention_days=7)
    now = house.clock.now()
    places = {}
    for lab_id, days in (("acme", 8), ("acme", 6), ("rival", 8), ("rival", 31)):
        place = places[lab_id, days] = house.settings.learning / "labs" / lab_id / f"job_{days}"
        place.mkdir(parents=True)
        (place / "rows.jsonl").write_bytes(TALK)
        moment = (now - timedelta(days=days)).timestamp()
        os.utime(place, (moment, moment))
    services = house.app.state.services
    purging = asyncio.create_task(purge(house.store, house.clock, services.tenants, house.settings.learning))
    async with asyncio.timeout(30.0):
        while places["acme", 8].exists() or places["rival", 31].exists():  # noqa: ASYNC110 (files have no event)
            await asyncio.sleep(0.02)
    purging.cancel()
    await asyncio.wait([purging])
    assert places["acme", 6].exists()
    assert places["rival", 8].exists()
