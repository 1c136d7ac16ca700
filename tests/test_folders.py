"""Folders of the server are for its user alone, whichever of them is made first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_server.folders import make_private


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """The usual mask, under which a folder is open to be read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_what_is_missing_above_is_private_as_well_and_what_is_there_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "data" / "cache" / "anchors")
    make_private(tmp_path / "data" / "cache")
    assert [mode(tmp_path / name) for name in (".", "data", "data/cache", "data/cache/anchors")] == [
        0o755,
        *[0o700] * 3,
    ]


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(OSError, match="data"):
        make_private(tmp_path / "data" / "cache")
