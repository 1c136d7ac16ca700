"""Sets of requests with their own replies: which exchange a dialogue gives, and what stands beside its reply."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import untouched
from benchmarks.quality.shipped import ADVERSARIAL, COSINE, HEAD, LENGTH, SHIPPED, Noted
from benchmarks.quality.untouched import TWIN, built, built_table, exchanges
from reward_server.reward_models.style import reply_of, style_of
from reward_server.reward_models.style_sets import NEIGHBOURS, request_of
from tests.benchmarks.test_quality_report import THINGS, a_data_folder
from tests.reward_models.letters import LetterEncoder

pytestmark = pytest.mark.slow

QUESTION, ANSWER = "Since when does your {} hurt you?", "It began about {} weeks ago, I think."


def folders(folder: Path) -> Path:
    """MTS-Dialog, MathDial and tau-bench with a few dialogues each."""
    (folder / "mts_dialog").mkdir(parents=True)
    with (folder / "mts_dialog" / "set.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["ID", "dialogue"])
        writer.writeheader()
        for place, thing in enumerate(THINGS):
            lines = ["Doctor: Do you smoke?", "Patient: No.", f"Doctor: {QUESTION.format(thing)}"]
            writer.writerow({"ID": str(place), "dialogue": "\n".join([*lines, f"Patient: {ANSWER.format(place + 2)}"])})
        writer.writerow({"ID": "short", "dialogue": "Doctor: Any pain?\nPatient: No."})
    said = ["Teacher: (generic)Hello.", "Student: I think the answer is twelve."]
    turns = "|EOM|".join([*said, "Teacher: (focus)How did you get there, exactly?"])
    (folder / "mathdial").mkdir()
    (folder / "mathdial" / "test.jsonl").write_text(
        "".join(json.dumps({"qid": qid, "conversation": turns}) + "\n" for qid in (1, 1, 2))
    )
    tries = [
        {
            "task_id": task,
            "traj": [
                {"role": "system", "content": "You are an agent of an airline."},
                {"role": "user", "content": "I want to change my flight."},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "assistant", "content": f"Of course, what is the number {task}?"},
            ],
        }
        for task in (7, 7, 8)
    ]
    (folder / "tau_bench").mkdir()
    (folder / "tau_bench" / "airline.json").write_text(json.dumps(tries))
    return folder


def test_a_dialogue_gives_its_first_exchange_that_says_something(tmp_path: Path) -> None:
    found = exchanges(folders(tmp_path), 1_000)
    assert {name: len(pairs) for name, pairs in found.items()} == {
        "mts_dialog": len(THINGS),
        "mathdial": 2,
        "tau_bench": 2,
    }
    [first] = [pair for pair in found["mts_dialog"] if pair.group == "0"]
    assert (request_of(first.chosen), reply_of(first.chosen)) == (QUESTION.format(THINGS[0]), ANSWER.format(2))
    assert {reply_of(pair.chosen) for pair in found["mathdial"]} == {"How did you get there, exactly?"}
    assert {request_of(pair.chosen) for pair in found["tau_bench"]} == {"I want to change my flight."}


def test_a_set_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    assert exchanges(tmp_path, 10) == {}


def test_beside_a_reply_stands_a_longer_one_to_another_request_or_the_same_laid_out(tmp_path: Path) -> None:
    pairs = exchanges(folders(tmp_path), 1_000)["mts_dialog"]
    replies = {reply_of(pair.chosen): pair.group for pair in pairs}
    sets = built(pairs, LetterEncoder())
    assert len(sets[TWIN]) == len(pairs)
    for name in (NEIGHBOURS, ADVERSARIAL):
        for pair in sets[name]:
            foreign = reply_of(pair.rejected)
            assert request_of(pair.chosen) == request_of(pair.rejected)
            assert style_of(foreign)[0] > style_of(reply_of(pair.chosen))[0]
            assert replies[foreign.splitlines()[-1].removeprefix("- ")] != pair.group
    for pair in sets[TWIN]:
        assert reply_of(pair.rejected).endswith(f"- {reply_of(pair.chosen)}")


def test_what_is_shipped_stands_beside_the_cosine_on_the_same_pairs() -> None:
    noted = Noted()
    for name in (NEIGHBOURS, ADVERSARIAL, TWIN):
        noted.groups[name] = ["a", "b", "c", "d"]
        for judge, right in {LENGTH: 0, COSINE: 2, HEAD: 3, SHIPPED: 4}.items():
            noted.right[judge][name] = [float(place < right) for place in range(4)]
    lines = built_table("mts_dialog", 4, noted).splitlines()
    [gain] = [line for line in lines if line.startswith(f"| {SHIPPED} less {COSINE}")]
    assert gain.split(" | ")[1].startswith("+0.500")


@pytest.mark.slow
def test_heads_are_trained_on_other_subsets_and_asked_about_every_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    data = a_data_folder(tmp_path / "data")
    for kept in folders(tmp_path / "more").iterdir():
        (data / kept.name).mkdir(exist_ok=True)
        for path in kept.iterdir():
            path.rename(data / kept.name / path.name)
    untouched.main(["--data", str(data), "--features", "all", "--counterparts", "with"])
    printed = capsys.readouterr().out
    assert "LLMBar natural" in printed
    assert f"mts_dialog, {len(THINGS)} dialogues" in printed
    shares = [
        float(cell.split()[0])
        for line in printed.splitlines()
        if line.startswith(f"| {SHIPPED} |")
        for cell in line.strip("| ").split(" | ")[1:]
        if cell != "-"
    ]
    assert len(shares) > 8
    assert np.isfinite(shares).all()
