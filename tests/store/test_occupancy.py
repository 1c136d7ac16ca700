"""One server to a SQLite database, any number to PostgreSQL."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reward_server.cli import serve
from reward_server.errors import ConfigurationError
from reward_server.server import app
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from reward_server.store.engine import sqlite_url
from reward_server.store.occupancy import LOOK_S, occupied, succeeding


def test_a_second_server_is_refused_in_one_line(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "labs.sqlite")
    with occupied(url), pytest.raises(ConfigurationError, match=r"runs on .* already") as caught, occupied(url):
        pass
    assert "\n" not in caught.value.message
    assert str(tmp_path) in caught.value.message


async def test_a_second_server_says_so_before_it_loads_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_app(*_: object, **__: object) -> None:
        raise AssertionError("something was loaded")

    monkeypatch.setattr(app, "create_app", create_app)
    settings = Settings(data=tmp_path, port=0)
    with occupied(settings.database), pytest.raises(ConfigurationError, match=r"runs on .* already"):
        await serve._run(settings, standby=False)


async def test_a_folder_that_nobody_can_write_is_one_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        await serve._run(Settings(data=Path("/proc/labs"), port=0), standby=False)
    assert "/proc/labs" in caught.value.message
    assert "\n" not in caught.value.message


def test_the_next_one_may_once_the_first_has_gone(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "labs.sqlite")
    for _ in range(2):
        with occupied(url):
            pass


def test_servers_share_postgres() -> None:
    url = "postgresql://labs@127.0.0.1/labs"
    with occupied(url), occupied(url):
        pass


async def test_of_two_that_wait_one_gets_it_when_it_is_free(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "labs.sqlite")
    got: list[str] = []
    leave = asyncio.Event()

    async def wait(name: str) -> None:
        async with succeeding(url):
            got.append(name)
            await leave.wait()

    with occupied(url):
        waiting = [asyncio.create_task(wait(name)) for name in ("one", "other")]
        await asyncio.sleep(5 * LOOK_S)
        assert got == []
    async with asyncio.timeout(5.0):
        while not got:  # noqa: ASYNC110 (it is about who gets it, not about events)
            await asyncio.sleep(LOOK_S)
    await asyncio.sleep(5 * LOOK_S)
    assert len(got) == 1
    with pytest.raises(ConfigurationError, match="already"), occupied(url):
        pass
    leave.set()
    async with asyncio.timeout(5.0):
        await asyncio.gather(*waiting)
    assert sorted(got) == ["one", "other"]


async def test_a_server_that_is_refused_has_not_migrated_the_database_of_the_other(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    app = create_app(settings, ports=Ports(own_process=False))
    with occupied(settings.database), pytest.raises(ConfigurationError, match="already"):
        async with app.router.lifespan_context(app):
            pass
    assert not (tmp_path / "labs.sqlite").exists()
