"""Rows of training data: every accepted form, and one line with the row's number for each that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.read import RowOptions, read_dataset, read_folder
from reward_server.reward_models.dataset import Dataset

Rows = Callable[..., Path]
TALK = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"}]
PROMPT, BETTER, WORSE = TALK[:1], TALK[1:], [{"role": "assistant", "content": "What?"}]


def said(dataset: Dataset) -> list[list[tuple[str, str]]]:
    return [[(said.party, said.text) for said in conversation.turns] for conversation in dataset.conversations()]


def test_labels_come_from_score_dimensions_or_raters(rows: Rows) -> None:
    path = rows(
        {"messages": TALK, "score": 0.7, "group": "a"},
        {"messages": TALK, "scores": {"Empathy": 0.5, "Goal": 1}, "dialogue_id": 7},
        {"messages": TALK, "ratings": [0.2, 0.4, 0.9]},
        {"messages": TALK, "score": 0.1, "scores": {"Empathy": 0.3}, "scenario": "a shop"},
    )
    found = read_dataset(path, RowOptions())
    assert [dict(row.scores) for row in found.labelled] == [
        {"score": 0.7},
        {"Empathy": 0.5, "Goal": 1.0, "score": 0.75},
        {"score": pytest.approx(0.5)},
        {"score": 0.1, "Empathy": 0.3},
    ]
    assert [row.group for row in found.labelled[:2]] == ["a", "7"]
    assert found.labelled[2].ratings == (0.2, 0.4, 0.9)
    assert found.labelled[3].conversation.scenario == "a shop"
    assert said(found)[0] == [("persona", "Hello"), ("agent", "Good morning")]


def test_the_agent_may_be_the_user(rows: Rows) -> None:
    path = rows({"messages": TALK, "score": 1, "agent_role": "user"})
    assert said(read_dataset(path, RowOptions())) == [[("agent", "Hello"), ("persona", "Good morning")]]


PAIRS: dict[str, dict[str, Any]] = {
    "whole conversations": {"chosen": PROMPT + BETTER, "rejected": PROMPT + WORSE},
    "TRL with a prompt": {"prompt": PROMPT, "chosen": BETTER, "rejected": WORSE},
    "TRL with texts": {"prompt": "Hello", "chosen": "Good morning", "rejected": "What?"},
    "hh": {"chosen": "\n\nHuman: Hello\n\nAssistant: Good morning", "rejected": "\n\nHuman: Hello\n\nAssistant: What?"},
    "OpenAI": {"input": {"messages": PROMPT}, "preferred_output": BETTER, "non_preferred_output": WORSE},
}


@pytest.mark.parametrize("form", PAIRS)
def test_pairs_are_read_in_every_form(rows: Rows, form: str) -> None:
    found = read_dataset(rows(PAIRS[form]), RowOptions())
    assert said(found) == [
        [("persona", "Hello"), ("agent", "Good morning")],
        [("persona", "Hello"), ("agent", "What?")],
    ]
    assert found.grouped_by == "beginning"


def test_rows_of_both_kinds_stand_in_one_file(rows: Rows) -> None:
    found = read_dataset(rows({"messages": TALK, "score": 0.7}, *PAIRS.values()), RowOptions())
    assert (len(found.labelled), len(found.preferred)) == (1, 5)


def test_ties_are_left_out_or_learned_as_ties(rows: Rows) -> None:
    pair = PAIRS["whole conversations"]
    path = rows(pair, {**pair, "tie": True}, {**pair, "margin": 0})
    dropped, kept = read_dataset(path, RowOptions()), read_dataset(path, RowOptions(ties="half"))
    assert len(dropped.preferred) == 1
    assert dropped.notes == ("2 ties left out",)
    assert [p.tie for p in kept.preferred] == [False, True, True]


def test_margins_weigh_pairs_within_limits(rows: Rows) -> None:
    pair = PAIRS["whole conversations"]
    path = rows(*({**pair, "margin": margin} for margin in (0.01, 0.2, 0.2, 0.4, 9)))
    assert [p.weight for p in read_dataset(path, RowOptions()).preferred] == [0.25, 1.0, 1.0, 2.0, 4.0]


def test_another_scale_has_to_be_said(rows: Rows) -> None:
    path = rows({"messages": TALK, "score": 4}, {"messages": TALK, "ratings": [1, 5]})
    assert [row.scores["score"] for row in read_dataset(path, RowOptions((1, 5))).labelled] == [0.75, 0.5]


GOOD = {"messages": TALK, "score": 0.5}


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"messages": TALK, "score": 1.5}, "`score` is outside 0 to 1; give the scale as --scale LOW HIGH"),
        ({"messages": TALK, "score": -0.1}, "`score` is outside 0 to 1"),
        ('{"messages": [], "score": NaN}', "must be a list with at least one message"),
        (json.dumps({"messages": TALK, "score": float("nan")}), "`score` is not a finite number"),
        ({"messages": TALK, "score": "good"}, "`score` is not a number"),
        ({"messages": TALK, "score": True}, "`score` is not a number"),
        ({"messages": TALK, "scores": {"Empathy": "x"}}, "`scores.Empathy` is not a number"),
        ({"messages": TALK, "scores": [1]}, "`scores` must be an object"),
        ({"messages": TALK, "ratings": [0.5, None]}, "`ratings` is not a number"),
        ({"messages": TALK}, "no label: give `score`, `scores` or `ratings`"),
        ({"score": 0.5}, "no known form"),
        ({"chosen": PROMPT + BETTER}, "no known form"),
        ({"messages": "Hello", "score": 0.5}, "`messages` must be a list"),
        ({"messages": PROMPT, "score": 0.5}, "no message by the agent"),
        ({"messages": [*PROMPT, {"role": "assistant", "content": " "}], "score": 0.5}, "the agent says nothing"),
        ({"messages": TALK, "score": 0.5, "agent_role": "system"}, "`agent_role` must be assistant or user"),
        ({"messages": TALK, "score": 0.5, "group": [1]}, "`group` must be a name or a number"),
        ({"chosen": TALK, "rejected": TALK}, "both sides are the same conversation"),
        ({**PAIRS["TRL with texts"], "margin": -1}, "`margin` must be a finite number that is not negative"),
        ({**PAIRS["TRL with texts"], "margin": "big"}, "`margin` is not a number"),
        ({"chosen": "Hello", "rejected": "Bye"}, "`chosen` has no Human:/Assistant: turns"),
        ("{not json", "not JSON"),
        ([1, 2], "a row must be an object"),
    ],
)
def test_a_row_that_cannot_be_read_ends_it_with_its_number(rows: Rows, row: Any, line: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read_dataset(rows(GOOD, row, GOOD), RowOptions())
    assert error.value.message.startswith("row 2: ")
    assert line in error.value.message
    assert "\n" not in error.value.message


def test_so_many_bad_rows_may_be_left_out_and_are_told(rows: Rows) -> None:
    file = rows(GOOD, {"score": 0.5}, GOOD, {"messages": TALK}, GOOD)
    found = read_dataset(file, RowOptions(skip_bad=2))
    assert len(found.labelled) == 3
    [note] = found.notes
    assert note.startswith("2 rows left out that cannot be read: row 2: no known form")
    assert note.endswith("row 4: no label: give `score`, `scores` or `ratings`")
    with pytest.raises(InvalidRequest) as error:
        read_dataset(file, RowOptions(skip_bad=1))
    assert error.value.message.startswith("more than 1 row cannot be read (--skip-bad): row 2: no known form")
    assert "row 4: no label" in error.value.message


def test_what_is_wrong_with_several_rows_is_told_once(rows: Rows) -> None:
    file = rows(GOOD, {"score": 0.5}, {"messages": TALK}, {"score": 0.6}, {"score": 0.7})
    [note] = read_dataset(file, RowOptions(skip_bad=4)).notes
    assert note.startswith("4 rows left out that cannot be read: rows 2, 4, 5: no known form")
    assert note.count("no known form") == 1
    assert "; row 3: no label" in note


def test_who_wrote_a_reply_is_read(rows: Rows) -> None:
    found = read_dataset(
        rows({**GOOD, "system": "A"}, {**PAIRS["TRL with texts"], "chosen_model": "A", "rejected_model": "B"}),
        RowOptions(),
    )
    assert found.labelled[0].system == "A"
    assert found.preferred[0].systems == ("A", "B")


def test_the_files_of_a_folder_are_read_and_others_passed_over(rows: Rows, tmp_path: Path) -> None:
    rows(GOOD, GOOD)
    (tmp_path / "notes.json").write_text('{"anything": 1}')
    assert len(read_folder(tmp_path, RowOptions()).labelled) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequest, match="holds no file of labelled conversations or pairs"):
        read_folder(tmp_path / "empty", RowOptions())


def test_a_file_without_rows_is_refused(rows: Rows) -> None:
    with pytest.raises(InvalidRequest, match="no usable row"):
        read_dataset(rows(), RowOptions())
    with pytest.raises(InvalidRequest, match="only ties"):
        read_dataset(rows({**PAIRS["TRL with texts"], "tie": True}), RowOptions())


@pytest.mark.parametrize("scale", [(1.0, 1.0), (5.0, 1.0), (0.0, float("inf"))])
def test_a_scale_has_two_ends(scale: tuple[float, float]) -> None:
    with pytest.raises(InvalidRequest, match="--scale takes two numbers"):
        RowOptions(scale)


def test_what_both_sides_begin_with_and_names_of_groups_are_in_memory_once(rows: Rows) -> None:
    pair = {**PAIRS["whole conversations"], "group": "dialogue 1"}
    [first, second] = read_dataset(rows(pair, pair), RowOptions()).preferred
    assert first.chosen.turns[0] is first.rejected.turns[0]
    assert first.chosen.turns[1] is not first.rejected.turns[1]
    assert first.group is second.group
