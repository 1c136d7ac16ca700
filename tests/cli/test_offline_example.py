"""What docs/offline.md says of its sample file with and without the persona's answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reward_server.cli.evaluate import evaluate

pytestmark = pytest.mark.usefixtures("shared_encoder")
ROOT = Path(__file__).parents[2]
SAMPLE = "examples/data/conversations.jsonl"


def rewards(folder: Path, scenario: str, *options: str) -> list[float]:
    app = typer.Typer()
    app.command()(evaluate)
    where = ["--collection", "customer-support", "--scenario", scenario, "--out", str(folder / "out")]
    result = CliRunner().invoke(
        app, [str(ROOT / SAMPLE), *where, "--data", str(folder / "data"), *options], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    return [json.loads(line)["reward"] for line in lines]


def both(folder: Path, scenario: str) -> tuple[list[float], list[float]]:
    assert f"{SAMPLE} --collection customer-support --scenario {scenario}" in (ROOT / "docs/offline.md").read_text()
    return rewards(folder / "plain", scenario), rewards(folder / "answered", scenario, "--persona-answers")


@pytest.mark.slow
def test_another_scenarios_persona_answers_for_more_than_the_recorded_partner(tmp_path: Path) -> None:
    plain, answered = both(tmp_path, "boots-past-the-window")
    assert set(plain) == {0.0}
    assert sum(reward > 0.0 for reward in answered) > len(answered) / 2


@pytest.mark.slow
def test_the_scenario_that_the_file_is_of_gives_the_same_but_for_invitations(tmp_path: Path) -> None:
    plain, answered = both(tmp_path, "leaking-blender")
    assert '"Anything else?"' in (ROOT / "docs/offline.md").read_text()
    talks = [json.loads(line)["messages"] for line in (ROOT / SAMPLE).read_text().splitlines()]
    invites = [any(message["content"] == "Anything else?" for message in talk) for talk in talks]
    assert len(talks) == len(plain) == len(answered)
    assert [before for before, i in zip(plain, invites, strict=True) if not i] == [
        after for after, i in zip(answered, invites, strict=True) if not i
    ]
    assert any(after > before for before, after in zip(plain, answered, strict=True))
    assert max(plain) > 0.0
