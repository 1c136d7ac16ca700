"""`labs evaluate --reward`: files are scored by a reward of the library or of a module of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_server.cli.main import app

MODULE = """
from trainer_client.rewards import CompositeReward, KeywordReward, LengthReward

both = CompositeReward({"length": LengthReward(at_least=2), "polite": KeywordReward(["sorry"])})


def fails(messages):
    if "sorry" in messages[-1]["content"]:
        raise RuntimeError("no judge")
    return 0.25
"""
SAID = ("I am so sorry to hear that. When does it leak?", "No.")


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"parts_{tmp_path.name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "rows.jsonl"
    lines = [
        {"messages": [{"role": "user", "content": "It leaks."}, {"role": "assistant", "content": s}]} for s in SAID
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"nothing": 1}]))
    return file


def scored(rows: Path, reward: str, *arguments: str) -> list[dict[str, object]]:
    out = rows.with_name("out.jsonl")
    done = CliRunner().invoke(app, ["evaluate", str(rows), "--reward", reward, "--out", str(out), *arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_components_are_scores(rows: Path) -> None:
    first, second, bad = scored(rows, f"parts_{rows.parent.name}:both")
    assert first["scores"] == {"length": 1.0, "length/mean_words": 11.0, "polite": 1.0, "polite/sorry": 1.0}
    assert first["reward"] == 1.0
    assert second["reward"] != 1.0
    assert (bad["status"], bad["code"]) == ("error", "bad_row")


def test_one_of_the_library_and_a_failure_is_no_number(rows: Path) -> None:
    assert [each["status"] for each in scored(rows, "EngagementReward")] == ["success", "success", "error"]
    rows.with_name("out.jsonl").unlink()
    first, second, _ = scored(rows, f"parts_{rows.parent.name}:fails")
    assert (first["status"], first["code"], "reward" in first) == ("error", "reward_failed", False)
    assert (second["status"], second["reward"]) == ("success", 0.25)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reward", "Nothing"], "has no attribute 'Nothing'"),
        (["--reward", "no_such:thing"], "No module named"),
        (["--reward", "json:__name__"], "is no reward"),
        (["--reward", "EngagementReward", "--collection", "c"], "leave out"),
    ],
)
def test_what_cannot_be_is_one_line(rows: Path, arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(rows), *arguments])
    assert done.exit_code == 1
    assert says in str(done.exception)
    assert "\n" not in str(done.exception)
