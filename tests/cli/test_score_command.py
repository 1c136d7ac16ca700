"""`labs score`: data sets in, results out, the same numbers through either engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from reward_server.cli.evaluate import evaluate
from reward_server.cli.score import score
from reward_server.errors import InvalidRequest, LabsError
from reward_server.offline import workers
from reward_server.offline.table_run import journal_of
from scenarios.template import begin

pytestmark = pytest.mark.slow

HERE = ["--collection", "bike-shop", "--scenario", "noise"]
QUESTIONS = ("When exactly do you hear the noise?", "Which brake is it?", "Buy a new bike.", "Hello.")


def talk(number: int) -> dict[str, Any]:
    return {
        "id": f"talk-{number}",
        "messages": [
            {"role": "user", "content": "Hi, my bike makes a dreadful noise."},
            {"role": "assistant", "content": f"{QUESTIONS[number % 4]} It is question {number}."},
            {"role": "user", "content": "It only happens when I squeeze the front brake."},
        ],
    }


TALKS = [talk(number) for number in range(8)]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    begin("bike-shop/noise", tmp_path / "collections")
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in TALKS) + "{broken\n")
    return tmp_path


def run(work: Path, source: str, *arguments: str, command: Any = score) -> str:
    app = typer.Typer()
    app.command()(command)
    where = source if source.startswith("hf:") else str(work / source)
    result = CliRunner().invoke(app, [where, "--dir", str(work / "collections"), *HERE, *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("shared_encoder")
def test_the_numbers_are_those_of_evaluate(work: Path) -> None:
    out = work / "scores.jsonl"
    output = run(work, "talks.jsonl", "--out", str(out))
    assert "8 conversations scored, 1 not" in output
    assert "1 × bad_row" in output
    assert "a second" in output
    run(work, "talks.jsonl", "--out", str(work / "report"), command=evaluate)
    assert out.read_bytes() == (work / "report" / "results.jsonl").read_bytes()
    assert not journal_of(out).exists()
    with pytest.raises(InvalidRequest, match="exists already"):
        run(work, "talks.jsonl", "--out", str(out))


@pytest.mark.usefixtures("shared_encoder")
@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet"])
def test_if_nothing_was_scored_the_corrected_command_has_nothing_in_its_way(work: Path, name: str) -> None:
    out = work / name
    with pytest.raises(LabsError, match="nothing was scored"):
        run(work, "talks.jsonl", "--out", str(out), "--agent-speaker", "bot")
    assert not out.exists()
    assert not journal_of(out).exists()
    assert "8 conversations scored, 1 not" in run(work, "talks.jsonl", "--out", str(out))
    assert out.exists()


@pytest.mark.usefixtures("shared_encoder")
def test_rows_without_the_agents_role_are_named_with_what_to_set(work: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": "Hi."}]}, TALKS[0], TALKS[0]]
    (work / "roles.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    output = run(work, "roles.jsonl", "--out", str(work / "scores.jsonl"))
    assert "row 1: bad_row: no message by the agent, only by `user` (say who the agent is: --agent-role" in output
    assert "Every conversation got the same reward" in output


@pytest.mark.usefixtures("shared_encoder")
def test_parquet_saved_data_sets_and_folders_give_the_same(work: Path) -> None:
    from datasets import Dataset

    table = pyarrow.Table.from_pylist([*TALKS, {"id": "empty", "messages": None}])
    pyarrow.parquet.write_table(table.slice(0, 5), work / "part-0.parquet")
    pyarrow.parquet.write_table(table.slice(5), work / "part-1.parquet")
    (work / "parts").mkdir()
    for part in work.glob("part-*.parquet"):
        part.rename(work / "parts" / part.name)
    Dataset.from_list(TALKS).save_to_disk(work / "saved")
    run(work, "talks.jsonl", "--out", str(work / "a.jsonl"))
    run(work, "parts", "--out", str(work / "b.parquet"))
    run(work, "saved", "--out", str(work / "c.jsonl"))
    wanted = [(each["id"], each["reward"]) for each in lines(work / "a.jsonl")[:8]]
    rows = pyarrow.parquet.read_table(work / "b.parquet").to_pylist(maps_as_pydicts="strict")
    assert [(each["id"], each["reward"]) for each in rows[:8]] == wanted
    assert rows[0]["scores"] == lines(work / "a.jsonl")[0]["scores"]
    assert (rows[8]["status"], rows[8]["code"]) == ("error", "bad_row")
    assert [(each["id"], each["reward"]) for each in lines(work / "c.jsonl")] == wanted


@pytest.mark.usefixtures("shared_encoder")
def test_an_interrupted_run_goes_on_and_scores_nothing_twice(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "BATCH", 3)
    out, whole = work / "scores.jsonl", work / "whole.jsonl"
    run(work, "talks.jsonl", "--out", str(whole))
    scored: list[int] = []
    original = workers.RowWorker.score

    def dying(self: Any, rows: Any) -> Any:
        if len(scored) >= 6:
            raise RuntimeError("killed")
        scored.extend(row.number for row in rows)
        return original(self, rows)

    monkeypatch.setattr(workers.RowWorker, "score", dying)
    with pytest.raises(RuntimeError, match="killed"):
        run(work, "talks.jsonl", "--out", str(out))
    assert not out.exists()
    with pytest.raises(InvalidRequest, match="--resume"):
        run(work, "talks.jsonl", "--out", str(out))
    # As if the process had been killed in the middle of a line.
    with (journal_of(out) / "results.jsonl").open("a") as journal:
        journal.write('{"key": "cut off')
    scored.clear()
    run(work, "talks.jsonl", "--out", str(out), "--resume")
    assert scored == [6, 7, 8, 9]  # the last row of the journal is looked at again, and not written again
    assert out.read_bytes() == whole.read_bytes()


def test_wrong_calls_say_what_is_wrong(work: Path) -> None:
    (work / "empty").mkdir()
    (work / "no.parquet").write_text("no table")
    for arguments, message in (
        (("nothing.jsonl",), "no file"),
        (("talks.jsonl", "--out", str(work / "x.csv")), ".jsonl or .parquet"),
        (("talks.jsonl", "--engine", "abacus"), "local or ray"),
        (("talks.jsonl", "--workers", "2"), "--engine ray"),
        (("empty",), "neither Parquet"),
        (("no.parquet",), "cannot be read as Parquet"),
    ):
        where = () if "--out" in arguments else ("--out", str(work / "out.jsonl"))
        with pytest.raises(LabsError, match=message):
            run(work, *arguments, *where)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_two_workers_on_ray_give_the_same_bytes(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    many = [talk(number) for number in range(200)]
    (work / "many.jsonl").write_text("".join(json.dumps(each) + "\n" for each in many))
    run(work, "many.jsonl", "--out", str(work / "local.jsonl"))
    said = run(work, "many.jsonl", "--engine", "ray", "--workers", "2", "--out", str(work / "ray.jsonl"))
    assert (work / "ray.jsonl").read_bytes() == (work / "local.jsonl").read_bytes()
    assert "  worker " in said  # one may have done it all while the other was still starting
    # Half of it is there: Ray does the rest, and the whole is the same.
    out = work / "resumed.jsonl"
    journal_of(out).mkdir()
    half = (work / "local.jsonl").read_text().splitlines(keepends=True)[:100]
    (journal_of(out) / "results.jsonl").write_text("".join(half))
    run(work, "many.jsonl", "--engine", "ray", "--workers", "2", "--out", str(out), "--resume")
    assert out.read_bytes() == (work / "local.jsonl").read_bytes()
