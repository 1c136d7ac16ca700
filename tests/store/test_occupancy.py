"""One server to a SQLite database, any number to PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from reward_server.errors import ConfigurationError
from reward_server.store.engine import sqlite_url
from reward_server.store.occupancy import occupied


def test_a_second_server_is_refused_in_one_line(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "labs.sqlite")
    with occupied(url), pytest.raises(ConfigurationError, match=r"runs on .* already") as caught, occupied(url):
        pass
    assert "\n" not in caught.value.message
    assert str(tmp_path) in caught.value.message


def test_the_next_one_may_once_the_first_has_gone(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "labs.sqlite")
    for _ in range(2):
        with occupied(url):
            pass


def test_servers_share_postgres() -> None:
    url = "postgresql://labs@127.0.0.1/labs"
    with occupied(url), occupied(url):
        pass
