"""The secret behind the keys: made once, private, never replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from reward_server.auth.pepper import FILE_NAME, load_pepper
from reward_server.errors import ConfigurationError


def test_it_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    first = load_pepper(tmp_path / "data")
    assert len(first) >= 32
    assert load_pepper(tmp_path / "data") == first
    file = tmp_path / "data" / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == [FILE_NAME]


def test_each_data_directory_has_its_own(tmp_path: Path) -> None:
    assert load_pepper(tmp_path / "a") != load_pepper(tmp_path / "b")


def test_those_who_start_together_agree(tmp_path: Path) -> None:
    barrier = Barrier(8)

    def load(_: int) -> bytes:
        barrier.wait()
        return load_pepper(tmp_path / "data")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(load, range(8)))) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == [FILE_NAME]


def test_a_damaged_one_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("short")
    with pytest.raises(ConfigurationError, match="damaged"):
        load_pepper(tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == "short"


def test_a_directory_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        load_pepper(tmp_path / "file")
