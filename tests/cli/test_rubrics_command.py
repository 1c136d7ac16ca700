"""A rubric without a persona on the command line: begun, checked, listed, and logs scored by it in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reward_server.cli.evaluate import evaluate
from reward_server.cli.scenarios import app
from reward_server.errors import InvalidRequest, LabsError
from tests.rubrics.talks import LOGS, ORDER

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(command, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def scoring() -> typer.Typer:
    command = typer.Typer()
    command.command()(evaluate)
    return command


def test_a_new_rubric_passes_the_check_and_scores_logs(here: Path) -> None:
    assert "next: " in run(app, "new", "--rubric-only", "answers")
    checked = run(app, "check", "answers.yaml")
    assert checked.rstrip().endswith("passed")
    assert "set up a model to decide owns_it" in checked
    output = run(scoring(), "answers.logs.jsonl", "--rubric", "answers.yaml", "--out", "out.jsonl")
    assert "6 conversations scored" in output
    assert "not decided, so they count for nothing: owns_it (6)" in output
    rewards = [json.loads(line)["reward"] for line in (here / "out.jsonl").read_text().splitlines()]
    assert rewards == sorted(rewards, reverse=True)
    assert len(set(rewards)) >= 5


def test_it_may_be_a_scenario_of_a_collection(here: Path) -> None:
    run(app, "new", "--rubric-only", "support/answers", "--dir", "own")
    assert "passed" in run(app, "check", "support/answers", "--dir", "own")
    assert "answers" in run(app, "list", "--dir", "own")


def test_a_rubric_in_the_wrong_order_fails_the_check(here: Path) -> None:
    run(app, "new", "--rubric-only", "answers")
    rows = [json.loads(line) for line in (here / "answers.logs.jsonl").read_text().splitlines()]
    for row in rows:
        row["grade"] = -row["grade"]
    (here / "answers.logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "change what earns, or the grades" in run(app, "check", "answers.yaml")


def test_what_is_wrong_is_said_with_its_line(here: Path) -> None:
    run(app, "new", "--rubric-only", "answers")
    text = (here / "answers.yaml").read_text()
    (here / "answers.yaml").write_text(text.replace(r"'\?'", "'(?=x)y'"))
    line = next(n for n, each in enumerate(text.splitlines(), 1) if r"'\?'" in each)
    with pytest.raises(LabsError, match=rf"answers\.yaml:{line}: .*RE2"):
        run(app, "check", "answers.yaml")


def test_a_rubric_comes_before_what_rows_name(here: Path) -> None:
    run(app, "new", "--rubric-only", "answers")
    rows = [{"collection_slug": "x", "scenario_slug": "y", "messages": LOGS[name]} for name in ORDER]
    (here / "logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "4 conversations scored" in run(scoring(), "logs.jsonl", "--rubric", "answers.yaml", "--out", "out.jsonl")
    with pytest.raises(InvalidRequest, match="leave out --collection"):
        run(
            scoring(),
            "logs.jsonl",
            "--rubric",
            "answers.yaml",
            "--collection",
            "a",
            "--scenario",
            "b",
            "--out",
            "o.jsonl",
        )
