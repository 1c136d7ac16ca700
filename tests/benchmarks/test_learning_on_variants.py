"""Learning on variants: a script that can ask for everything, and a table of all runs that are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.learning_on_variants import KINDS, OF_A_KIND, WHERE, VariantsRun, dialogues, kept_in, script_of
from scenarios.library import load_library


@pytest.mark.slow
def test_the_script_has_one_line_for_each_fact_that_is_asked_for_in_short() -> None:
    script = script_of(load_library(only=["/".join(WHERE)]))
    by_kind = Counter(line["kind"] for line in script["exchanges"])
    answers = [tuple(line["persona"]) for line in script["exchanges"] if line["kind"] == "good"]
    assert len(set(answers)) > 15
    assert len(answers) < 2 * len(set(answers))
    assert 0 < by_kind["idle"] <= OF_A_KIND
    assert set(by_kind) >= {"good", "plan", "premature", "chatter", "idle"}
    assert all(style["early"] and style["late"] for style in script["styles"])


def test_all_runs_of_a_folder_are_found_in_the_order_of_the_table(tmp_path: Path) -> None:
    runs = [
        VariantsRun(KINDS[0], 0, curriculum=False, folder=tmp_path),
        VariantsRun(KINDS[0], 11, curriculum=False, folder=tmp_path),
        VariantsRun(KINDS[0], 2, curriculum=True, folder=tmp_path),
        VariantsRun(KINDS[4], 1, curriculum=False, folder=tmp_path),
    ]
    for run in reversed(runs):
        run.place.mkdir()
    (tmp_path / "data").mkdir()
    assert kept_in(tmp_path) == runs


def test_the_lines_of_a_kept_dialogue_are_read_without_their_rewards(tmp_path: Path) -> None:
    path = tmp_path / "update-0020.txt"
    path.write_text(
        "seed 7, reward 0.150, max_turns_reached\n\npersona: Hello.\npolicy : Since when?   [0.11]\npersona: A week.\n"
        "\nseed 8, reward 0.000, max_turns_reached\n\npersona: Hi.\npolicy : Bye.   [0.00]\n"
    )
    assert list(dialogues(path)) == [["Hello.", "Since when?", "A week."], ["Hi.", "Bye."]]
