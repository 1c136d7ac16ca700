"""`labs evaluate`: from a file to a report, and clear words for wrong calls."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reward_server.cli import evaluate as command
from reward_server.cli import main as cli
from reward_server.cli.evaluate import evaluate
from reward_server.errors import CollectionNotFound, InvalidRequest, LabsError, ScenarioError, ScenarioNotFound
from reward_server.offline import workers
from reward_server.offline.results import Result, ResultsFile
from scenarios.template import begin

pytestmark = pytest.mark.usefixtures("shared_encoder")
HERE = ["--collection", "bike-shop", "--scenario", "noise"]
TALK = {
    "messages": [
        {"role": "user", "content": "Hi, my bike makes a dreadful noise."},
        {"role": "assistant", "content": "When exactly do you hear the noise?"},
        {"role": "user", "content": "It only happens when I squeeze the front brake."},
    ]
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    begin("bike-shop/noise", tmp_path / "collections")
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(TALK) + "\n" for _ in range(5)) + "{broken\n")
    return tmp_path


def run(work: Path, *arguments: str, source: str = "talks.jsonl") -> str:
    app = typer.Typer()
    app.command()(evaluate)
    options = ["--dir", str(work / "collections"), "--out", str(work / "out")]
    result = CliRunner().invoke(app, [str(work / source), *options, *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_a_file_becomes_results_a_summary_and_a_report(work: Path) -> None:
    output = run(work, *HERE)
    assert "5 of 6 conversations scored" in output
    assert "1 × bad_row" in output
    assert sorted(path.name for path in (work / "out").iterdir()) == [
        "dimensions.png", "report.md", "results.jsonl", "reward_histogram.png", "summary.json",
    ]  # fmt: skip
    assert json.loads((work / "out" / "summary.json").read_text())["rewards"]["mean"] > 0


@pytest.mark.slow
def test_a_limit_and_a_resumed_run_give_what_one_run_gives(work: Path) -> None:
    run(work, *HERE, "--limit", "2")
    assert "5 of 6" in run(work, *HERE, "--resume")
    rows = [json.loads(line)["row"] for line in (work / "out" / "results.jsonl").read_text().splitlines()]
    assert rows == [1, 2, 3, 4, 5, 6]


def interrupted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--dir", str(work / "collections"), "--out", str(work / "out")]
    monkeypatch.setattr(sys, "argv", ["labs", "evaluate", str(work / "talks.jsonl"), *options, *HERE])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = ResultsFile.append

    def one_batch(results: ResultsFile, batch: Sequence[Result]) -> None:
        append(results, batch)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "BATCH", 2)
        patch.setattr(ResultsFile, "append", one_batch)
        interrupted(work, patch)
    told = f"labs: interrupted; the same command with --resume continues (--out {work / 'out'})\n"
    assert capsys.readouterr().err == told
    assert len((work / "out" / "results.jsonl").read_text().splitlines()) == 2
    assert "5 of 6" in run(work, *HERE, "--resume")


@pytest.mark.slow
def test_ctrl_c_before_the_first_results_says_that_nothing_was_kept(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def at_once(*_: object) -> None:
        raise KeyboardInterrupt

    for slow in ("library_of", "engine_of"):
        with monkeypatch.context() as patch:
            patch.setattr(command, slow, at_once)
            interrupted(work, patch)
        told = "labs: interrupted; nothing was kept yet, so the same command starts from the beginning\n"
        assert capsys.readouterr().err == told
    assert "5 of 6" in run(work, *HERE)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--collection", "bike-shop"], InvalidRequest),
        (["--collection", "absent", "--scenario", "noise"], CollectionNotFound),
        (["--collection", "bike-shop", "--scenario", "absent"], ScenarioNotFound),
        ([*HERE, "--format", "absent"], InvalidRequest),
        ([*HERE, "--agent-role", "robot"], InvalidRequest),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_written(
    work: Path, arguments: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        run(work, *arguments)
    assert not (work / "out").exists()


@pytest.mark.slow
def test_the_data_folder_decides_which_reward_model_is_part_of_the_version(work: Path) -> None:
    models = work / "data" / "reward-models"
    models.mkdir(parents=True)
    (models / "active.json").write_text(json.dumps({"id": "rm_0123456789ab"}))
    versions = []
    for folder in ("data", "other"):
        run(work, *HERE, "--data", str(work / folder), "--out", str(work / folder / "out"))
        summary = json.loads((work / folder / "out" / "summary.json").read_text())
        versions.append(summary["scoring_version"])
    assert versions[0].startswith(f"{versions[1]}_")


def test_the_path_of_the_report_stays_on_one_line(work: Path) -> None:
    out = work / "a-folder-with-a-long-name" / "and-another-one-in-it" / "so-that-no-terminal-holds-it"
    assert f"report in {out / 'report.md'}\n" in run(work, *HERE, "--out", str(out))


@pytest.mark.slow
def test_results_are_not_overwritten(work: Path) -> None:
    run(work, *HERE)
    with pytest.raises(InvalidRequest, match="--resume"):
        run(work, *HERE)


def test_a_file_in_which_nothing_can_be_scored_fails(work: Path) -> None:
    (work / "bad.jsonl").write_text("{broken\n")
    with pytest.raises(LabsError, match="nothing was scored"):
        run(work, *HERE, source="bad.jsonl")


def test_broken_scenario_files_are_named(work: Path) -> None:
    path = work / "collections" / "bike-shop" / "noise.rubric.yaml"
    path.write_text(path.read_text().replace("weight: 0.5}", "weight: 0.4}"))
    with pytest.raises(ScenarioError, match=r"noise\.rubric\.yaml:\d+: "):
        run(work, *HERE)
