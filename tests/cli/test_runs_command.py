"""`labs runs` against a server process that trains nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_server.auth.scopes import EVERY
from tests.cli.warm import Labs
from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow
CONFIG = f"""[server]
collection = "{WHERE["collection_slug"]}"
scenario = "{WHERE["scenario_slug"]}"

[run]
updates = 3
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("runs")
    with server_process(folder, keys=("acme",), scopes=EVERY, LABS_TRAINING_RUN_WORKERS="0") as running:
        yield running


def test_a_run_is_started_listed_stopped_and_deleted(server: ServerProcess, labs: Labs, tmp_path: Path) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"]}
    file = tmp_path / "run.toml"
    file.write_text(CONFIG)
    started = labs("runs", "start", str(file), "--name", "first", **env)
    assert started.returncode == 0, started.stderr
    run = started.stdout.strip()
    line = f"{run}  queued  0 of 3 updates  (first)\n"
    assert labs("runs", "list", **env).stdout == labs("runs", "show", run, **env).stdout == line
    assert labs("runs", "metrics", run, **env).stdout == ""
    assert labs("runs", "stop", run, **env).stdout == line.replace("queued", "stopped")
    assert labs("runs", "resume", run, **env).stdout == line
    refused = labs("runs", "delete", run, **env)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    labs("runs", "stop", run, **env)
    assert labs("runs", "delete", run, **env).returncode == 0
    assert labs("runs", "list", **env).stdout == ""


def test_a_file_that_cannot_be_used_is_one_line(server: ServerProcess, labs: Labs, tmp_path: Path) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"]}
    file = tmp_path / "run.toml"
    for text, said in (("[run\n", f"{file}: "), ("[run]\nupdate = 3\n", "did you mean 'updates'?")):
        file.write_text(text)
        refused = labs("runs", "start", str(file), **env)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert said in refused.stderr
