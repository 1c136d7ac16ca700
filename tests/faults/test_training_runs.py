"""Runs of the real learner on a real server: what comes of them, and what does when processes are stopped or killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reward_server.auth.scopes import EVERY
from tests.faults.server_process import WHERE, ServerProcess, server_process
from tests.faults.test_job_kills import worker
from trainer_client import LabsClient
from trainer_client.wire import KeySummary, TrainingRunResponse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

WAIT_S = 300.0
LONG = 100_000
"""Updates of a run that ends only when somebody ends it."""


def tiny(updates: int, **sections: Any) -> dict[str, Any]:
    """A run of seconds."""
    return {
        "server": {"collection": WHERE["collection_slug"], "scenario": WHERE["scenario_slug"], "max_turns": 2},
        "model": {"width": 32, "max_tokens": 4},
        "warmup": {"steps": 3, "batch": 2},
        "rollout": {"groups": 2, "group_size": 2},
        "evaluation": {"episodes": 2, "every": 1},
        "run": {"updates": updates, "checkpoint_every": 1},
        **sections,
    }


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[tuple[ServerProcess, LabsClient]]:
    with (
        server_process(folder, keys=("acme",), scopes=EVERY, **environment) as server,
        LabsClient(server.url, server.keys["acme"]) as client,
    ):
        yield server, client


def until(client: LabsClient, run_id: str, holds: Callable[[TrainingRunResponse], bool]) -> TrainingRunResponse:
    """The run as soon as that holds of it."""
    deadline = time.monotonic() + WAIT_S
    while not holds(run := client.training_runs.get(run_id)):
        assert time.monotonic() < deadline, run
        time.sleep(0.1)
    return run


def learners(run_id: str) -> list[int]:
    """Processes that work in the folder of a run: the learner and its guardian."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended; what one that nobody has waited for was called is empty
            if run_id in (process / "cmdline").read_text():
                found.append(int(process.name))
    return found


def gone(run_id: str) -> bool:
    deadline = time.monotonic() + 30
    while learners(run_id) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not learners(run_id)


def folder_of(server: ServerProcess, run_id: str, lab: str = "acme") -> Path:
    return server.data / "training-runs" / "labs" / lab / run_id


def metrics_file(server: ServerProcess, run_id: str) -> list[dict[str, Any]]:
    text = (folder_of(server, run_id) / "run" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def all_keys(client: LabsClient) -> list[KeySummary]:
    return list(client.operator.keys())


def key_of(client: LabsClient, run_id: str) -> KeySummary:
    """The one key that was made for a run."""
    [key] = [each for each in all_keys(client) if each.name == run_id]
    return key


def all_records(client: LabsClient, run_id: str) -> list[dict[str, Any]]:
    return [record.model_dump() for record in client.training_runs.metrics(run_id, limit=7)]


def test_a_run_trains_with_a_key_of_its_own_and_its_metrics_can_be_read(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, client):
        before = client.training_runs.start(tiny(LONG)).training_run_id
        run_id = client.training_runs.start(tiny(2), name="second").training_run_id
        until(client, before, lambda run: run.status == "running")
        assert client.training_runs.get(run_id).status == "queued"  # one at a time
        key = key_of(client, before)
        assert (key.lab_id, key.scopes, key.revoked_at) == ("acme", ["train"], None)
        client.training_runs.stop(before)
        run = client.training_runs.wait(run_id, poll_s=0.2)
        assert (run.status, run.step, run.steps, run.error) == ("complete", 2, 2, None)
        records = all_records(client, run_id)
        assert records == metrics_file(server, run_id)
        assert [(each["kind"], each["step"]) for each in records] == [
            *(("eval", 0), ("train", 1), ("eval", 1), ("train", 2), ("eval", 2)),
        ]
        assert (run.reward, run.held_out_reward) == (records[-2]["reward/mean"], records[-1]["reward/mean"])
        assert [key for key in all_keys(client) if key.name in (before, run_id)] == []
        assert gone(run_id)
        _holds_no_key(folder_of(server, run_id))
        _tells_of_the_end(server, run_id, records)
        client.training_runs.delete(run_id)
        assert not folder_of(server, run_id).exists()


def _tells_of_the_end(server: ServerProcess, run_id: str, records: list[dict[str, Any]]) -> None:
    headers = {"Authorization": f"Bearer {server.keys['acme']}"}
    told = httpx2.get(f"{server.url}/api/v1/training-runs/{run_id}/events", headers=headers, timeout=30).text
    assert told.startswith("event: finished\n")
    assert json.loads(told.partition("data: ")[2])["metrics"] == records


def _holds_no_key(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"run.toml", "learner.log"} <= {path.name for path in files}
    assert [path for path in files if b"lab_" in path.read_bytes()] == []


def test_in_development_mode_a_run_needs_no_key_and_makes_none(tmp_path: Path) -> None:
    with server_process(tmp_path, keys=()) as server, LabsClient(server.url) as client:
        run = client.training_runs.start(tiny(1))
        assert client.training_runs.wait(run.training_run_id, poll_s=0.2).status == "complete"
        assert all_keys(client) == []


def test_a_run_is_stopped_in_the_middle_and_goes_on_from_there(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, client):
        run_id = client.training_runs.start(tiny(LONG)).training_run_id
        until(client, run_id, lambda run: run.step >= 1)
        assert client.training_runs.stop(run_id).status in ("stopping", "stopped")
        stopped = client.training_runs.wait(run_id, poll_s=0.2)
        assert (stopped.status, stopped.error, gone(run_id)) == ("stopped", None, True)
        kept = [path.name for path in (folder_of(server, run_id) / "run" / "checkpoints").iterdir()]
        assert any(name.endswith(f"{stopped.step}") for name in kept), kept
        assert client.training_runs.resume(run_id).status == "queued"
        until(client, run_id, lambda run: run.step > stopped.step)
        client.training_runs.stop(run_id)
        assert client.training_runs.wait(run_id, poll_s=0.2).status == "stopped"
        assert f"continuing from update {stopped.step} of" in (folder_of(server, run_id) / "learner.log").read_text()
        assert all_records(client, run_id) == metrics_file(server, run_id)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_learner_ends_with_the_server_and_the_next_one_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as (server, client):
        run_id = client.training_runs.start(tiny(LONG)).training_run_id
        reached = until(client, run_id, lambda run: run.step >= 1).step
        assert learners(run_id)
        os.kill(server.pid, number)
        assert server.wait() == (0 if number == signal.SIGTERM else -number)
        assert gone(run_id)
    with serving(tmp_path) as (server, client):
        goes_on = until(client, run_id, lambda run: run.step > reached + 1)
        assert goes_on.status == "running"
        client.training_runs.stop(run_id)
        assert client.training_runs.wait(run_id, poll_s=0.2).status == "stopped"
        assert "continuing from update" in (folder_of(server, run_id) / "learner.log").read_text()
        assert all_records(client, run_id) == metrics_file(server, run_id)
        assert [key for key in all_keys(client) if key.name == run_id] == []


def test_a_worker_runs_it_for_the_server_and_another_goes_on_when_it_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, LABS_JOB_WORKERS="0") as (server, client):
        database = f"sqlite:///{server.data / 'labs.sqlite'}"
        run_id = client.training_runs.start(tiny(LONG)).training_run_id
        with worker(server.data, database, LABS_TRAINING_URL=server.url) as process:
            reached = until(client, run_id, lambda run: run.step >= 1).step
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert gone(run_id)
        assert client.training_runs.get(run_id).status == "running"
        with worker(server.data, database, LABS_TRAINING_URL=server.url):
            until(client, run_id, lambda run: run.step > reached + 1)
            client.training_runs.stop(run_id)
            assert client.training_runs.wait(run_id, poll_s=0.2).status == "stopped"


def test_why_a_run_failed_is_the_learners_own_line(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, client):
        rows = b'{"messages": [{"role": "user", "content": "Hello."}]}\n'
        file_id = client.jobs.upload(rows).file_id
        wrong = client.training_runs.start(tiny(1, warmup={"script": "nothing"}))
        unfit = client.training_runs.start(tiny(1, algorithm={"name": "sft"}, data={"file": file_id}))
        failed = client.training_runs.wait(wrong.training_run_id, poll_s=0.2)
        assert failed.status == "failed"
        assert failed.error is not None
        assert failed.error.startswith("there is no packaged script 'nothing'")
        failed = client.training_runs.wait(unfit.training_run_id, poll_s=0.2)
        assert failed.status == "failed"
        assert failed.error is not None
        assert failed.error.startswith("rows.jsonl")


def test_a_run_learns_from_an_uploaded_file(tmp_path: Path) -> None:
    talk = {
        "messages": [
            {"role": "user", "content": "I am tired."},
            {"role": "assistant", "content": "Since when are you tired?"},
        ]
    }
    with serving(tmp_path) as (_, client):
        file_id = client.jobs.upload(f"{json.dumps(talk)}\n".encode() * 20).file_id
        config = tiny(2, algorithm={"name": "sft"}, data={"file": file_id, "batch": 2, "micro": 2})
        run = client.training_runs.wait(client.training_runs.start(config).training_run_id, poll_s=0.2)
        assert (run.status, run.step, run.error) == ("complete", 2, None)
        assert run.config["data"]["file"] == file_id
