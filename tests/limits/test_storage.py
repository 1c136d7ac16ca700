"""What labs keep in files is measured while others delete there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_server.limits import storage


def test_a_folder_that_vanishes_while_it_is_measured_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model").write_bytes(b"1234")
    scandir = storage.os.scandir

    def vanished(path: Any) -> Iterator[Any]:
        if Path(path).name == "b":
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", vanished)
    assert storage._bytes_in([tmp_path]) == 4
    (tmp_path / "a" / "gone").symlink_to("nowhere")
    assert storage._bytes_in([tmp_path, tmp_path / "missing"]) == 4
