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

ONLY_JUDGED = """\
schema: labs.rubric/1
name: Care
situation: An agent of a bike shop answers customers.
criteria:
  - {id: owns_it, check: {judge: {question: "Does the agent take responsibility?"}}}
"""
PARTLY_JUDGED = """\
schema: labs.rubric/1
name: Care
situation: An agent of a bike shop answers customers.
dimensions:
  - {name: D1_Asking, weight: 0.5}
  - {name: D2_Care, weight: 0.5}
criteria:
  - {id: asks, dimension: D1_Asking, check: {regex: {pattern: '\\?'}}}
  - {id: asks_at_all, dimension: D1_Asking, cap: 0.4, check: {regex: {pattern: '\\?'}}}
  - {id: greets, dimension: D2_Care, check: {keyword: {any: [hello]}}}
  - {id: owns_it, dimension: D2_Care, check: {judge: {question: "Does the agent take responsibility?"}}}
  - {id: blames, dimension: D2_Care, cap: 0.3, check: {judge: {question: "Does the agent blame the customer?"}}}
"""


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


def test_a_rubric_that_no_judge_can_decide_does_not_pass(here: Path) -> None:
    run(app, "new", "--rubric-only", "answers")
    (here / "answers.yaml").write_text(ONLY_JUDGED)
    result = CliRunner().invoke(app, ["check", "answers.yaml"])
    assert result.exit_code == 1
    assert "no reward" not in result.output
    [reason] = [line for line in result.output.splitlines() if "nothing can be scored" in line]
    assert "`owns_it`" in reason
    assert "LABS_LLM_PROVIDER" in reason
    assert result.output.rstrip().endswith("failed")


def test_what_could_not_be_decided_is_said_with_what_came_of_it(here: Path) -> None:
    (here / "rubric.yaml").write_text(PARTLY_JUDGED)
    (here / "logs.jsonl").write_text(json.dumps({"messages": LOGS["good"]}) + "\n")
    output = run(scoring(), "logs.jsonl", "--rubric", "rubric.yaml", "--out", "out")
    report = (here / "out" / "report.md").read_text()
    [result] = [json.loads(line) for line in (here / "out" / "results.jsonl").read_text().splitlines()]
    assert (result["reward"], result["capped_by"]) == (0.4, ["failure_criterion"])
    assert result["undecided"] == ["owns_it", "blames"]
    for title, name in (
        ("ot decided, so they count for nothing", "owns_it"),
        ("imensions left out of the reward", "D2_Care"),
        ("cap could not be decided, so rewards may be too high", "blames"),
        ("aps that lowered", "failure_criterion"),
    ):
        assert any(title in line and f"{name} (1)" in line for line in output.splitlines()), title
        assert f"| {name} | 1 |" in next(part for part in report.split("## ") if title in part), title
    assert "LABS_DECISIONS" in output
    assert "LABS_DECISIONS" in report
