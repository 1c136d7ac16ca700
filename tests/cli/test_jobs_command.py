"""`labs jobs` and `client.jobs` against a server process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.warm import Labs
from tests.faults.server_process import WHERE, ServerProcess, server_process
from trainer_client import AsyncLabsClient, LabsClient, NotFound

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TALK = [
    {"role": "user", "content": "Hello, my bike has a flat tyre."},
    {"role": "assistant", "content": "Good morning. How did it happen?"},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("jobs"), keys=("acme",)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{number}", "messages": TALK}) + "\n" for number in range(30)))
    return path


def test_a_file_is_scored_in_the_background_from_the_command_line(
    server: ServerProcess, file: Path, labs: Labs, tmp_path: Path
) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"]}
    where = ("--collection", WHERE["collection_slug"], "--scenario", WHERE["scenario_slug"])
    done = labs("jobs", "submit", str(file), *where, "--wait", **env)
    assert done.returncode == 0, done.stderr
    job_id, line = done.stdout.splitlines()
    assert line == f"{job_id}  evaluate  completed  30 of 30 items"
    assert labs("jobs", "list", **env).stdout.splitlines()[0] == line
    shown = labs("jobs", "show", job_id, "--wait", **env).stdout
    assert json.loads(shown.partition("\n")[2])["items"] == 30
    out = tmp_path / "out.jsonl"
    labs("jobs", "results", job_id, "--out", str(out), **env)
    assert [json.loads(row)["id"] for row in out.read_text().splitlines()] == [f"t{number}" for number in range(30)]
    assert labs("jobs", "cancel", job_id, **env).stdout.strip() == line
    refused = labs("jobs", "resume", job_id, **env)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_without_a_good_key_it_says_what_to_set(server: ServerProcess, labs: Labs) -> None:
    for key, what in (("", "needs an API key"), ("lab_wrong", "does not accept this API key")):
        done = labs("jobs", "list", LABS_URL=server.url, LABS_API_KEY=key)
        assert done.returncode == 1
        host = server.url.removeprefix("http://")
        assert done.stderr.startswith(f"labs: the server at {host} {what}; set LABS_API_KEY to one that it has")


def test_a_failed_training_says_why(server: ServerProcess, file: Path, labs: Labs) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"]}
    done = labs("jobs", "submit", str(file), "--type", "train_reward_model", "--wait", **env)
    job_id, line = done.stdout.splitlines()
    assert (done.returncode, line) == (1, f"{job_id}  train_reward_model  failed  1 of 1 items, 1 failed")
    assert labs("jobs", "list", **env).stdout.splitlines()[0] == line
    [why] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "preference" in why or "label" in why, why
    assert labs("jobs", "show", job_id, **env).stderr.splitlines()[-1] == why


def test_a_job_that_makes_something_ends_with_its_id(server: ServerProcess, labs: Labs) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"]}
    rows = str(ROOT / "examples" / "data" / "rows.jsonl")
    options = json.dumps({"method": "isotonic", "belongs_to": "sv_0123456789ab"})
    done = labs("jobs", "submit", rows, "--type", "calibrate", "--options", options, "--wait", **env)
    assert done.returncode == 0, done.stderr
    job_id, _, made = done.stdout.splitlines()
    [result] = map(json.loads, labs("jobs", "results", job_id, **env).stdout.splitlines())
    assert made == f"calibration_id: {result['calibration_id']}"


def test_the_client_submits_waits_and_reads(server: ServerProcess, file: Path) -> None:
    with LabsClient(server.url, server.keys["acme"]) as client:
        uploaded = client.jobs.upload(file)
        assert (uploaded.name, uploaded.lines) == ("talks.jsonl", 30)
        job = client.jobs.submit("evaluate", file_id=uploaded.file_id, **WHERE)
        seen: list[float] = []
        over = client.jobs.wait(job.job_id, on_progress=lambda job: seen.append(job.progress), poll_s=0.05)
        assert (over.status, over.counts.done, seen[-1]) == ("completed", 30, 1.0)
        assert seen == sorted(seen)
        found = list(client.jobs.results(job.job_id, after=27))
        assert [line.id for line in found] == ["t28", "t29"]
        assert found[0].reward == client.get_evaluation(found[0].evaluation_id).reward  # type: ignore[attr-defined]
        assert client.jobs.report(job.job_id).mean == found[0].reward
        assert next(iter(client.jobs.list())).job_id == job.job_id
        assert client.jobs.delete_file(uploaded.file_id).deleted
        with pytest.raises(NotFound):
            client.jobs.get("job_x")


async def test_the_asynchronous_client_does_the_same(server: ServerProcess) -> None:
    async with AsyncLabsClient(server.url, server.keys["acme"]) as client:
        job = await client.jobs.submit("evaluate", items=[{"messages": TALK}], **WHERE)
        assert (await client.jobs.wait(job.job_id, poll_s=0.05)).counts.done == 1
        assert [line.index async for line in client.jobs.results(job.job_id)] == [0]
        again = await client.jobs.submit("rescore", source="evaluations")
        await client.jobs.wait(again.job_id, poll_s=0.05)
        assert (await client.jobs.report(again.job_id)).changed == 0
