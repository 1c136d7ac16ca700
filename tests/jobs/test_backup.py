"""Backup and restore, there and back on both engines, and what it refuses."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reward_server.auth.key_ring import KeyRing
from reward_server.auth.pepper import load_pepper
from reward_server.backup.run import back_up, restore
from reward_server.clock import SystemClock
from reward_server.errors import ConfigurationError
from reward_server.settings import Settings
from reward_server.store.engine import sqlite_file
from reward_server.store.migrate import check, migrate
from reward_server.store.occupancy import occupied
from reward_server.store.store import Store
from tests.store.builders import a_turn, after_a_turn, an_answer, an_episode

ODD = {"z": 1, "a": [None, "ü\u2028\t\\N", 0.1, 1e-17], "deep": {"b": 1, "a": 2}}


@pytest.fixture(params=["sqlite", "postgres"])
def settings_of(request: pytest.FixtureRequest) -> Callable[[Path], Settings]:
    """Settings of a new server with its data in this folder and a database of its own."""

    new = request.getfixturevalue("new_database") if request.param == "postgres" else lambda: None

    def made(data: Path) -> Settings:
        return Settings(data=data, cache=data / "cache", database_url=new())

    return made


async def filled(settings: Settings) -> str:
    """A server's data with a key, an episode and files; the key's text."""
    await migrate(settings.database)
    store = await Store.open(settings.database)
    try:
        ring = KeyRing(store, SystemClock(), load_pepper(settings.data))
        await ring.note_pepper()
        key = (await ring.create("acme")).text
        async with store.transaction() as work:
            episode = an_episode(episode_id="ep_kept", metadata=ODD)
            await work.episodes.add(episode)
            await work.episodes.append_turn(after_a_turn(episode), a_turn(after_a_turn(episode), answer=ODD))
            await work.answers.put(an_answer(body=ODD))
    finally:
        await store.close()
    if sqlite_file(settings.database) is None:
        settings.sqlite.write_bytes(b"left there by the move to PostgreSQL")
    (settings.data / "calibrations").mkdir()
    (settings.data / "calibrations" / "cal_1.json").write_text("{}")
    (settings.data / "cache").mkdir()
    (settings.data / "cache" / "vectors").write_text("made again")
    settings.learning.mkdir()
    (settings.learning / "rows.jsonl").write_text("begun again")
    return key


async def is_all_there(settings: Settings, key: str) -> bool:
    """Whether what was filled in is there, and the key is good."""
    await check(settings.database)
    store = await Store.open(settings.database)
    try:
        ring = KeyRing(store, SystemClock(), load_pepper(settings.data))
        await ring.check_pepper()
        async with store.reading() as work:
            episode = await work.episodes.get("acme", "ep_kept")
            [turn] = await work.episodes.turns("acme", "ep_kept")
        return await ring.verify(key) is not None and str(turn.answer) == str(ODD) and episode.metadata == ODD
    finally:
        await store.close()


async def test_everything_comes_back_and_the_keys_are_good(
    settings_of: Callable[[Path], Settings], tmp_path: Path
) -> None:
    before, after = settings_of(tmp_path / "before"), settings_of(tmp_path / "after")
    key = await filled(before)
    archive = tmp_path / "labs.tar.gz"
    run = before.runs / "labs" / "acme" / "run_1"
    run.mkdir(parents=True)
    (run / "weights").write_bytes(b"large")
    done = await back_up(before, archive)
    assert done.runs_left_out == 1
    assert archive.stat().st_mode & 0o777 == 0o600
    assert done.files == 1
    await restore(after, archive, force=False)
    assert await is_all_there(after, key)
    assert (after.data / "calibrations" / "cal_1.json").exists()
    assert not (after.data / "cache").exists()
    assert not after.runs.exists()
    assert not after.learning.exists()
    assert sorted(os.listdir(tmp_path)) == ["after", "before", "labs.tar.gz"]


async def test_what_is_there_is_replaced_only_when_told(
    settings_of: Callable[[Path], Settings], tmp_path: Path
) -> None:
    here, other = settings_of(tmp_path / "here"), settings_of(tmp_path / "other")
    key, lost = await filled(here), await filled(other)
    archive = tmp_path / "labs.tar.gz"
    await back_up(here, archive)
    with pytest.raises(ConfigurationError, match="--force"):
        await restore(other, archive, force=False)
    assert await is_all_there(other, lost)
    await restore(other, archive, force=True)
    assert await is_all_there(other, key)


async def test_a_copy_made_while_somebody_writes_is_of_one_moment(
    settings_of: Callable[[Path], Settings], tmp_path: Path
) -> None:
    here, after = settings_of(tmp_path / "here"), settings_of(tmp_path / "after")
    key = await filled(here)
    store = await Store.open(here.database)
    try:
        async with store.transaction() as work:
            await work.episodes.add(an_episode(episode_id="ep_open"))
            await back_up(here, tmp_path / "labs.tar.gz")
    finally:
        await store.close()
    await restore(after, tmp_path / "labs.tar.gz", force=False)
    assert await is_all_there(after, key)
    store = await Store.open(after.database)
    async with store.reading() as work:
        assert await work.episodes.get("acme", "ep_open") is None
    await store.close()


async def test_a_running_server_is_not_pulled_away_from_under(
    settings_of: Callable[[Path], Settings], tmp_path: Path
) -> None:
    here = settings_of(tmp_path / "here")
    await filled(here)
    await back_up(here, tmp_path / "labs.tar.gz")
    store = await Store.open(here.database)
    try:
        with occupied(here.database), pytest.raises(ConfigurationError, match="server"):
            await restore(here, tmp_path / "labs.tar.gz", force=True)
    finally:
        await store.close()


async def test_another_pepper_in_the_environment_is_refused(tmp_path: Path) -> None:
    here = Settings(data=tmp_path / "here")
    await filled(here)
    await back_up(here, tmp_path / "labs.tar.gz")
    with pytest.raises(ConfigurationError, match="LABS_PEPPER"):
        await restore(Settings(data=tmp_path / "new", pepper="x" * 32), tmp_path / "labs.tar.gz", force=True)


@pytest.mark.parametrize("harm", ["cut", "changed", "strange", "outside"])
async def test_a_damaged_archive_changes_nothing(tmp_path: Path, harm: str) -> None:
    here, archive = Settings(data=tmp_path / "here"), tmp_path / "labs.tar.gz"
    key = await filled(here)
    await back_up(here, archive)
    if harm == "cut":
        os.truncate(archive, archive.stat().st_size // 2)
    elif harm == "strange":
        archive.write_text("not an archive")
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path / "x", filter="data")
        (tmp_path / "x" / "pepper").write_text("y" * 64)
        with tarfile.open(archive, "w:gz") as tar:
            for path in sorted((tmp_path / "x").rglob("*")):
                name = str(path.relative_to(tmp_path / "x"))
                tar.add(path, arcname=f"../{name}" if harm == "outside" else name, recursive=False)
        shutil.rmtree(tmp_path / "x")
    with pytest.raises(ConfigurationError, match=r"backup|backed up"):
        await restore(here, archive, force=True)
    assert await is_all_there(here, key)
    assert sorted(os.listdir(tmp_path)) == ["here", "labs.tar.gz"]


async def test_there_has_to_be_something(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no database"):
        await back_up(Settings(data=tmp_path / "none"), tmp_path / "labs.tar.gz")
    assert not (tmp_path / "labs.tar.gz").exists()
