"""`labs judges evaluate`: verdicts on labelled criteria by whatever judge is configured; failures are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reward_server.cli.judges import app
from reward_server.errors import InvalidRequest
from reward_server.fitting.verdicts.read import DIMENSIONS, SMALL_SET, read
from tests.decisions.servers import Served

pytestmark = pytest.mark.usefixtures("shared_encoder")
LABELS = {
    (row["messages"][-1]["content"], question): met
    for row in map(json.loads, SMALL_SET.read_text().splitlines())
    for question, met in row["verdicts"].items()
}


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def knowing(body: dict[str, Any], wrong: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A System One server that knows the labels of the packaged set, but for some questions."""
    last = body["state"]["conversation"][-1]["agent"]
    answers = {}
    for name, asked in body["questions"].items():
        if asked["type"] == "noul":
            met = LABELS[last, asked["instructions"]] != (asked["instructions"] in wrong)
            answers[name] = {"type": "noul", "noul": 0.9 if met else 0.2}
        else:
            first, *others = asked["criteria"]
            shares = {first: 0.9} | dict.fromkeys(others, 0.1 / len(others))
            answers[name] = {"type": "choice", "choice": first, "confidence": 0.9, "probabilities": shares}
    return {"model": "knowing", "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 1}}


def asking(monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    for name, value in {"DECISIONS_URL": server.url, "DECISIONS_MODEL": "knowing", "LLM_RETRIES": "0"}.items():
        monkeypatch.setenv(f"LABS_{name}", value)


@pytest.mark.slow
def test_the_verdicts_of_a_decision_model_are_held_against_people(monkeypatch: pytest.MonkeyPatch) -> None:
    with Served(knowing) as server:
        asking(monkeypatch, server)
        code, said = run("--judge", "systemone")
    assert code == 0
    assert "| agreement | 100% | 96%-100% |" in said
    assert "| verdicts | 88 | |" in said
    assert "judged by decision; 0 without a verdict\n" in said
    error = next(line for line in said.splitlines() if line.startswith("| calibration error"))
    assert 0.1 < float(error.split("|")[2]) < 0.2, "right answers at .9 and .2 are too unsure by .15"
    calls = len(server.bodies)
    assert f"{calls} calls, {101 * calls:,} tokens" in said


@pytest.mark.slow
def test_wrong_verdicts_are_told_apart_by_how_they_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = frozenset({"Does the agent promise a refund?"})
    with Served(lambda body: knowing(body, wrong)) as server:
        asking(monkeypatch, server)
        said = run("--judge", "systemone")[1]
    # Asked of three conversations: one has such a promise, two have none.
    assert "| agreement | 97% |" in said
    assert "| met wrongly | 5% |" in said
    assert "| missed | 2% |" in said


@pytest.mark.slow
def test_a_failure_is_counted_by_its_kind_and_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(body: dict[str, Any]) -> dict[str, Any] | int:
        return 503 if "boots" in json.dumps(body["state"]) else knowing(body)

    with Served(answers) as server:
        asking(monkeypatch, server)
        said = run("--judge", "systemone")[1]
    assert "judged by decision; 16 without a verdict (16 overloaded)" in said
    assert "| verdicts | 72 | |" in said
    assert "| agreement | 100% |" in said


def test_a_judge_that_decides_nothing_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with Served(lambda body: 401) as server:
        asking(monkeypatch, server)
        code, said = run("--judge", "systemone", "--most", "3")
    assert code == 1
    assert "agreement" not in said
    assert "without a verdict (12 unauthorised)" in said


def test_without_a_judge_the_settings_are_named() -> None:
    with pytest.raises(InvalidRequest, match="LABS_JUDGES=decisions with LABS_DECISIONS"):
        run()
    with pytest.raises(InvalidRequest, match="--judge is one of llm, systemone"):
        run("--judge", "jev")


def test_a_folder_of_verdicts_and_of_annotated_replies_is_read(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "It broke."}, {"role": "assistant", "content": "I am sorry."}]
    (tmp_path / "own.jsonl").write_text(json.dumps({"messages": messages, "verdicts": {"Is the agent sorry?": True}}))
    annotation = {"Mistake_Identification": "Yes", "Mistake_Location": "To some extent", "Actionability": "No"}
    reply = {"Tutor A": {"response": "Look at the last line again.", "annotation": annotation}}
    annotated = [{"conversation_history": "Tutor: Hi\n Student: 2 + 2 = 5", "anno_llm_responses": reply}]
    (tmp_path / "annotated.json").write_text(json.dumps(annotated))
    people, own = read(tmp_path)
    assert (people.parts, people.answers) == (("Mistake_Identification", "Actionability"), (True, False))
    asked = [each.about for each in people.scenario.secrets.rubric.criteria]
    assert asked == [DIMENSIONS[name] for name in people.parts]
    assert (own.parts, own.answers) == (("own",), (True,))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": []}, "`verdicts` must hold"),
        ({"messages": [], "verdicts": {"Is it?": 1}}, "true or false"),
        ({"messages": "hello", "verdicts": {"Is it?": True}}, "`messages` must be a list"),
        ({"messages": [{"role": "user", "content": "hi"}], "verdicts": {"Is it?": True}}, "row 1"),
    ],
)
def test_a_row_that_is_wrong_is_one_line_with_its_place(tmp_path: Path, row: Any, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(InvalidRequest, match=r"mine\.jsonl row 1: ") as refused:
        read(path)
    assert said in str(refused.value)
