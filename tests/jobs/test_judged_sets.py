"""Public human-judged sets are read in their own forms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.read import RowOptions, read_dataset

HISTORY = "Tutor: What is 2 + 3?\u00a0\n\u00a0Student: 6"
REPLY = {"response": "Count again, please.", "annotation": {"Guidance": "To some extent", "Revealing": "No", "x": "?"}}


def dataset(folder: Path, rows: list[Any], name: str = "rows.json") -> Any:
    path = folder / name
    path.write_text(json.dumps(rows))
    return read_dataset(path, RowOptions())


@pytest.mark.parametrize(("label", "better"), [(1, "first"), (2, "second")])
def test_the_label_of_two_answers_names_the_better_one(tmp_path: Path, label: int, better: str) -> None:
    found = dataset(tmp_path, [{"input": "Say it.", "output_1": "first", "output_2": "second", "label": label}])
    (pair,) = found.preferred
    assert pair.chosen.turns[-1].text == better
    assert pair.chosen.turns[0].text == pair.rejected.turns[0].text == "Say it."


@pytest.mark.parametrize("label", [0, 3, True, "1", None])
def test_another_label_is_refused_with_its_row(tmp_path: Path, label: Any) -> None:
    with pytest.raises(InvalidRequest, match="row 1: `label`"):
        dataset(tmp_path, [{"input": "a", "output_1": "b", "output_2": "c", "label": label}])


def test_annotated_replies_are_conversations_of_one_dialogue(tmp_path: Path) -> None:
    other = {"response": "Yes, 5.", "annotation": {"Guidance": "No", "Revealing": "Yes (and the answer is correct)"}}
    row = {"conversation_id": "c-1", "conversation_history": HISTORY, "anno_llm_responses": {"A": REPLY, "B": other}}
    found = dataset(tmp_path, [row])
    first, second = found.labelled
    assert first.conversation.turns[-1].text == "Count again, please."
    assert dict(first.scores) == {"score": 0.25, "Guidance": 0.5, "Revealing": 0.0}
    assert dict(second.scores) == {"score": 0.5, "Guidance": 0.0, "Revealing": 1.0}
    assert first.group == second.group == "c-1"


def test_an_empty_reply_of_a_pair_is_a_silent_turn(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl.gz"
    row = {"chosen": "\n\nHuman: Swear!\n\nAssistant: ", "rejected": "\n\nHuman: Swear!\n\nAssistant: Ok"}
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    (pair,) = read_dataset(path, RowOptions()).preferred
    assert [said.text for said in pair.chosen.turns] == ["Swear!", ""]
    assert [said.text for said in pair.rejected.turns] == ["Swear!", "Ok"]


def test_two_silent_replies_are_no_pair(tmp_path: Path) -> None:
    row = {"chosen": "\n\nHuman: Go!\n\nAssistant: ", "rejected": "\n\nHuman: Go on!\n\nAssistant:"}
    with pytest.raises(InvalidRequest, match="row 1: the agent says nothing on either side"):
        dataset(tmp_path, [row])
