"""The public sets' formats, each as a few made-up rows."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from benchmarks.quality import data

pytestmark = pytest.mark.slow


def test_hh_pairs_share_all_but_the_last_message(tmp_path: Path) -> None:
    start = "\n\nHuman: How do I pick a lock?\n\nAssistant: Is it yours?\n\nHuman: Yes.\n\nAssistant: "
    rows = [
        {"chosen": f"{start}Then call a locksmith.", "rejected": f"{start}Use a pin."},
        {"chosen": f"{start}The same.", "rejected": f"{start}The same."},
    ]
    with gzip.open(tmp_path / "pairs.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (pair,) = data.hh_pairs(tmp_path)
    assert [said.party for said in pair.chosen.turns] == ["persona", "agent", "persona", "agent"]
    assert pair.chosen.turns[:-1] == pair.rejected.turns[:-1]
    assert (pair.chosen.turns[-1].text, pair.rejected.turns[-1].text) == ("Then call a locksmith.", "Use a pin.")
    assert pair.group == "How do I pick a lock?"


def test_llmbar_puts_the_preferred_output_first(tmp_path: Path) -> None:
    rows = [
        {"input": "Say hi.", "output_1": "Hi.", "output_2": "Bye.", "label": 1},
        {"input": "Say bye.", "output_1": "Hi.", "output_2": "Bye.", "label": "2"},
    ]
    (tmp_path / "processed_small.json").write_text(json.dumps(rows), encoding="utf-8")
    first, second = data.llmbar_pairs(tmp_path)["small"]
    assert (first.chosen.turns[-1].text, first.first_shown) == ("Hi.", "chosen")
    assert (second.chosen.turns[-1].text, second.first_shown) == ("Bye.", "rejected")


def test_mrbench_reads_turns_and_yes(tmp_path: Path) -> None:
    annotation = {name: "No" for name in data.DIMENSIONS}
    annotation |= {"Actionability": "Yes", "Revealing_of_the_Answer": "Yes (and the answer is correct)"}
    annotation["Coherence"] = "To some extent"
    row = {
        "conversation_id": "7-a",
        "conversation_history": "Tutor: What is 2 + 2?\u00a0\n\u00a0Student: It is 5.\nYes.\u00a0\n\u00a0Tutor: Hm.",
        "anno_llm_responses": {"one": {"response": "Count again.", "annotation": annotation}},
    }
    (tmp_path / "MRBench.json").write_text(json.dumps([row]), encoding="utf-8")
    (reply,) = data.mrbench_replies(tmp_path)
    assert [(said.party, said.text) for said in reply.conversation.turns] == [
        ("agent", "What is 2 + 2?"),
        ("persona", "It is 5. Yes."),
        ("agent", "Hm."),
        ("agent", "Count again."),
    ]
    assert {name for name, met in reply.met.items() if met} == {"Actionability", "Revealing_of_the_Answer"}
    assert reply.group == "7-a"


def test_mts_keeps_questions_whose_answers_say_something(tmp_path: Path) -> None:
    told = [
        "Doctor: How old are you?",
        "Patient: I am forty years old.",
        "Doctor: Any pain?",
        "Patient: No.",
        "Doctor: I see.",
        "Patient: It started last week.",
        "Doctor: Do you smoke?",
        "Guest_family: He does, a lot.",
        "Doctor: What brings you in?",
        "Patient: My knee hurts badly.",
        "Doctor: Since when?",
        "Patient: For two weeks now.",
    ]
    with (tmp_path / "set.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["ID", "section_header", "section_text", "dialogue"])
        writer.writeheader()
        writer.writerow({"ID": "1", "dialogue": "\n".join(told)})
        writer.writerow({"ID": "2", "dialogue": "\n".join(told[:4])})
    (interview,) = data.mts_interviews(tmp_path)
    assert interview.name == "1"
    assert [question for question, _ in interview.pairs] == ["How old are you?", "What brings you in?", "Since when?"]


def test_a_folder_without_the_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file \*\.csv"):
        data.mts_interviews(tmp_path)
