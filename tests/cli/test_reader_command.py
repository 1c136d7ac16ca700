"""`labs reader evaluate` on a small file, through the packaged artefact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_server.cli.main import app


def test_predictions_have_a_row_a_turn_and_the_table_is_printed(tmp_path: Path) -> None:
    turns = tmp_path / "tutoring__half-a-cup.jsonl"
    rows = [
        {"turn": "How did you get to two fifths?", "asks": ["tops_and_bottoms"], "commits": [], "kind": "specific"},
        {"turn": "What's the weather like?", "asks": [], "commits": [], "kind": "foreign"},
    ]
    turns.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    result = CliRunner().invoke(app, ["reader", "evaluate", str(turns), "--predictions", str(out)])
    assert result.exit_code == 0, result.output
    assert "specific understood (1)" in result.output
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["turn"] for row in written] == [row["turn"] for row in rows]
    assert set(written[0]) == {"collection", "scenario", "turn", "asks", "commits", "off_topic", "acts"}


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reader", "evaluate", str(tmp_path / "none__none.jsonl")])
    assert result.exit_code != 0
    assert "there is no file" in str(result.exception or result.output)


@pytest.mark.parametrize("label", ["asks", "commits", "told", "near"])
def test_a_name_that_the_case_does_not_have_is_one_line_with_its_place(tmp_path: Path, label: str) -> None:
    turns = tmp_path / "tutoring__half-a-cup.jsonl"
    good = {"turn": "How did you get to two fifths?", "asks": ["tops_and_bottoms"], "commits": [], "kind": "specific"}
    bad = {**good, label: "no_such_thing" if label == "near" else ["no_such_thing"]}
    turns.write_text(f"{json.dumps(good)}\n\n{json.dumps(bad)}\n")
    result = CliRunner().invoke(app, ["reader", "evaluate", str(turns)])
    assert result.exit_code != 0
    assert str(result.exception) == f"{turns}, line 3: tutoring/half-a-cup has no `no_such_thing`"
