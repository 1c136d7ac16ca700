"""The whole report on made-up sets of a few dozen rows, with and without a language model."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import product
from pathlib import Path

import pytest

from benchmarks.quality import disclosure, plots, protocols
from benchmarks.quality.__main__ import main, report
from benchmarks.quality.asking import ask_about
from benchmarks.quality.data import DIMENSIONS, Interview, llmbar_pairs
from benchmarks.quality.vectors import KeptVectors
from benchmarks.scripted_provider import Asked, ScriptedProvider
from reward_server.encoders.loading import load_encoder
from reward_server.settings import Settings

pytestmark = pytest.mark.slow

NAMES = (
    "bicycle kettle window garden letter ladder pillow carpet engine bottle mirror camera basket hammer violin jacket"
)
THINGS = NAMES.split()


def a_data_folder(folder: Path) -> Path:
    """All four sets; the better reply is polite, the worse one is rude."""
    for name in ("hh_rlhf_harmless", "llmbar", "mrbench", "mts_dialog"):
        (folder / name).mkdir()
    with gzip.open(folder / "hh_rlhf_harmless" / "pairs.jsonl.gz", "wt", encoding="utf-8") as file:
        for thing in THINGS * 2:
            start = f"\n\nHuman: How do I mend my {thing}?\n\nAssistant: "
            row = {"chosen": f"{start}Please take the {thing} to a shop.", "rejected": f"{start}Smash it, you fool!"}
            file.write(json.dumps(row) + "\n")
    for subset, things in {"natural": THINGS[:8], "processed_other": THINGS[8:]}.items():
        rows = [
            {
                "input": f"{verb} a {thing}.",
                f"output_{1 + place % 2}": f"The {thing} is on the table, and it is green.",
                f"output_{2 - place % 2}": "I would rather not.",
                "label": 1 + place % 2,
            }
            for place, (verb, thing) in enumerate(product(("Describe", "Draw"), things))
        ]
        (folder / "llmbar" / f"{subset}.json").write_text(json.dumps(rows), encoding="utf-8")
    tutoring = [
        {
            "conversation_id": str(number),
            "conversation_history": f"Tutor: How many {thing}s?\u00a0\n\u00a0Student: There are {number}.",
            "anno_llm_responses": {
                "good": {"response": "Count again, what comes first?", "annotation": dict.fromkeys(DIMENSIONS, "Yes")},
                "bad": {"response": f"Nice {thing}s, goodbye.", "annotation": dict.fromkeys(DIMENSIONS, "No")},
            },
        }
        for number, thing in enumerate(THINGS)
    ]
    (folder / "mrbench" / "MRBench.json").write_text(json.dumps(tutoring), encoding="utf-8")
    with (folder / "mts_dialog" / "set.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["ID", "dialogue"])
        writer.writeheader()
        for number, thing in enumerate(THINGS):
            lines = [
                f"Doctor: How old is your {thing}?",
                f"Patient: It is {number + 2} years old.",
                "Doctor: Do you smoke?",
                "Patient: No, I never smoke.",
                f"Doctor: Where is the {thing}?",
                f"Patient: The {thing} is at home.",
            ]
            writer.writerow({"ID": str(number), "dialogue": "\n".join(lines)})
    return folder


def line_of(text: str, beginning: str) -> list[str]:
    """The cells of the first table row that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {beginning}"))
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.slow
def test_every_table_is_there_and_learned_heads_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "DIVISIONS", 2)
    monkeypatch.setattr(protocols, "FOLDS", 3)
    (tmp_path / "data").mkdir()
    (tmp_path / "plots").mkdir()
    plots.draw_into(tmp_path / "plots")
    try:
        wanted = ["hh", "llmbar", "mrbench", "mts"]
        text = report(a_data_folder(tmp_path / "data"), wanted, tmp_path / "cache", Settings(llm_provider="none"))
    finally:
        plots.draw_into(None)
    assert line_of(text, "learned head, frozen encoder")[1].startswith("1.000")
    for judge in ("head on all features", "head on seven comparisons", "head of two levels"):
        for training in ("other subsets", "own kind, too"):
            assert line_of(text, f"{judge}, {training}")[1].startswith("1.000")
    assert float(line_of(text, "Actionability")[4].split()[0]) > 0.9
    assert line_of(text, "language model, both orders")[1:] == ["-", "-"]
    assert "No language model is configured" in text
    assert line_of(text, "learned ranker")[1].count("[") == 1
    drawn = {path.stem for path in (tmp_path / "plots").iterdir()}
    assert drawn == {"hh_reliability", "hh_risk_coverage", "llmbar_accuracy", "mrbench_auc", "mts_disclosure"}


def test_a_missing_set_is_left_out_and_said_so(tmp_path: Path) -> None:
    assert "mrbench: not in the data folder, left out." in report(tmp_path, ["mrbench"], None, Settings())


def test_an_unknown_set_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--data", str(tmp_path), "--only", "poetry"])
    assert "there is no set 'poetry'" in capsys.readouterr().err


def test_no_folder_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--data", str(tmp_path / "nowhere")])
    assert "is no folder" in capsys.readouterr().err


def prefers_what_is_green(asked: Asked) -> dict[str, object]:
    """The side whose transcript says green, with a quote of it."""
    better = "X" if asked.user.find("green") < asked.user.find("rather not") else "Y"
    return {"reason": "green", "better": better, "turn": 1, "quote": "it is green"}


def with_model(url: str) -> Settings:
    """A language model on loopback."""
    return Settings(
        llm_provider="openai", llm_base_url=f"{url}/v1", llm_model="scripted", llm_api_key="none", llm_retries=0
    )


def test_a_language_model_fills_its_column(tmp_path: Path) -> None:
    subsets = llmbar_pairs(a_data_folder(tmp_path) / "llmbar")
    with ScriptedProvider(prefers_what_is_green) as server:
        found = ask_about(subsets, with_model(server.url))
    assert {name: (asked.n, asked.failed) for name, asked in found.items()} == {"natural": (16, 0), "other": (16, 0)}
    assert str(found["natural"].accuracy).startswith("1.000")
    assert str(found["natural"].consistency).startswith("1.000")


def test_a_model_that_answers_by_place_is_inconsistent(tmp_path: Path) -> None:
    subsets = {"natural": llmbar_pairs(a_data_folder(tmp_path) / "llmbar")["natural"]}

    def first(asked: Asked) -> dict[str, object]:
        quote = "it is green" if asked.user.find("green") < asked.user.find("rather not") else "I would rather not."
        return {"reason": "first", "better": "X", "turn": 1, "quote": quote}

    with ScriptedProvider(first) as server:
        (found,) = ask_about(subsets, with_model(server.url)).values()
    assert str(found.consistency).startswith("0.000")
    assert str(found.accuracy).startswith("0.500")


def test_a_failing_model_has_no_figure(tmp_path: Path) -> None:
    subsets = {"natural": llmbar_pairs(a_data_folder(tmp_path) / "llmbar")["natural"]}
    with ScriptedProvider("no JSON at all") as server:
        (found,) = ask_about(subsets, with_model(server.url)).values()
    assert (found.failed, found.accuracy) == (found.n, "-")


def test_no_provider_asks_nobody() -> None:
    assert ask_about({}, Settings(llm_provider="none")) == {}


def test_vectors_are_kept_and_the_same(tmp_path: Path) -> None:
    encoder = load_encoder()
    texts = [f"This is sentence {number}." for number in range(40)]
    first = KeptVectors(encoder, tmp_path)
    rows = first.encode(texts)
    first.save()

    class Broken:
        version, width = encoder.version, encoder.width

        def encode(self, texts: object) -> object:
            raise AssertionError(f"asked for {texts}")

    again = KeptVectors(Broken(), tmp_path)  # type: ignore[arg-type]
    assert (again.encode(texts[::-1])[::-1] == rows).all()
    assert (encoder.encode(texts) == rows).all()


def test_an_answer_is_scored_without_the_others() -> None:
    interviews = [
        Interview(
            str(number),
            (
                (f"How old is your {thing}?", f"It is {number + 2} years old."),
                ("Do you smoke?", "No, I never smoke."),
                (f"Where is the {thing}?", f"The {thing} is at home."),
            ),
        )
        for number, thing in enumerate(THINGS)
    ]
    ranker = disclosure.Ranker(KeptVectors(load_encoder(), None), interviews)
    answers = ["It is ninety years old.", "The lamp is at home.", "No, I never smoke."]
    scores = ranker.scores("How old is the lamp?", answers)
    assert scores.argmax() == 0
    assert ranker.scores("How old is the lamp?", answers[1:])[0] == pytest.approx(scores[1])
