"""`labs store copy`: an installation goes on with PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.warm import Labs


@pytest.mark.slow
def test_keys_go_on_working_in_postgres(labs: Labs, tmp_path: Path, postgres_url: str) -> None:
    data = ("--data", str(tmp_path))
    assert labs("keys", "create", "ci", "--lab", "acme", *data).returncode == 0
    copied = labs("store", "copy", "--to", postgres_url, *data)
    assert copied.returncode == 0, copied.stderr
    assert copied.stdout.startswith("Copied and compared ")
    assert "\n  1 api_key\n" in copied.stdout
    assert postgres_url not in copied.stdout + copied.stderr
    there = labs("keys", "list", *data, LABS_DATABASE_URL=postgres_url)
    assert there.stdout == labs("keys", "list", *data).stdout != ""
    again = labs("store", "copy", "--to", postgres_url, *data)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "holds data already" in again.stderr
