"""`labs judges`: who judges here, what is measured of them, and clear words for wrong calls."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_server.cli.judges import app
from reward_server.errors import InvalidRequest

pytestmark = pytest.mark.usefixtures("shared_encoder")
COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
WHERE = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
ASKS = ["How did it happen?", "When do you need it back?", "You should buy a new bike."]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture
def talks(tmp_path: Path) -> str:
    rows = [
        {
            **WHERE,
            "messages": [
                {"role": "user", "content": "Hello, my bike has a flat tyre."},
                {"role": "assistant", "content": f"Good morning. {ASKS[k % 3]} I am number {k}."},
                {"role": "user", "content": "I rode over broken glass behind the station."},
            ],
            "label": int(k % 3 == 0),
        }
        for k in range(9)
    ]
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_judges_of_this_machine_are_listed() -> None:
    output = run("list", "--dir", str(COLLECTIONS))
    for name in ("rubric", "state", "rule", "local"):
        assert name in output
    assert "sv_" in output
    assert "llm" not in output
    assert "states uncertainty" in " ".join(output.split())
    assert "per answer" not in output, "a legend of what no row says"
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]
    assert all(name and version for name, version, *_ in cells), "a version goes over several lines"
    lasts = {line.split("│")[1].strip(): line.split("│")[-2].strip() for line in output.splitlines() if "│" in line}
    assert {lasts[name] for name in ("rubric", "state", "rule", "local")} == {"no"}


def test_what_per_answer_means_is_said_where_a_row_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"PROVIDER": "vllm", "MODEL": "scripted", "BASE_URL": "http://127.0.0.1:9/v1", "SAMPLES": "3"}
    for name, value in asked.items():
        monkeypatch.setenv(f"LABS_LLM_{name}", value)
    said = " ".join(run("list", "--dir", str(COLLECTIONS)).split())
    assert "per answer: some answers report uncertainty, others do not" in said


@pytest.mark.slow
def test_judges_are_measured_and_reported(talks: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    chosen = ["--judge", "rubric", "--judge", "state", "--attacked", "2"]
    output = run("agree", talks, *chosen, "--dir", str(COLLECTIONS), "--out", str(out))
    assert "With human labels" in output
    assert "master key" in output
    found = json.loads((out / "agreement.json").read_text())
    assert found["judges"] == ["rubric", "state"]
    assert found["scoring_version"].startswith("sv_")
    assert (out / "agreement.png").read_bytes().startswith(b"\x89PNG")


def test_an_earlier_report_is_not_written_over_unless_asked_to(
    tmp_path: Path, talks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "scores.jsonl", tmp_path / "out"
    path.write_text("".join(json.dumps({"scores": {"mine": k / 9}, "label": int(k > 4)}) + "\n" for k in range(9)))
    run("agree", str(path), "--out", str(out))
    (out / "report.md").write_text("earlier")
    with monkeypatch.context() as patch:
        patch.setattr("reward_server.server.engine.load_matcher", pytest.fail)  # before anything slow is done
        with pytest.raises(InvalidRequest, match="give another folder, or --force"):
            run("agree", talks, "--out", str(out), "--dir", str(COLLECTIONS))
    assert (out / "report.md").read_text() == "earlier"
    run("agree", str(path), "--out", str(out), "--force")
    assert "Agreement of 1 judge" in (out / "report.md").read_text()


def test_an_unknown_scenario_is_found_before_the_engine_is_loaded(
    talks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.server.engine.load_matcher", pytest.fail)
    path = tmp_path / "elsewhere.jsonl"
    path.write_text(Path(talks).read_text().replace("flat-tyre", "flat-tire"))
    said = "conversation 1: there is no scenario bike-shop/flat-tire here. Did you mean bike-shop/flat-tyre?"
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        run("agree", str(path), "--out", str(tmp_path / "out"), "--dir", str(COLLECTIONS))


def test_scores_need_no_judge(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps({"scores": {"mine": k / 9}, "label": int(k > 4)}) + "\n" for k in range(9)))
    out = tmp_path / "a-folder-with-a-long-name" / "and-another-one-in-it" / "so-that-no-terminal-holds-it"
    output = run("agree", str(path), "--out", str(out))
    assert "| mine |" in output
    assert f"report in {out / 'report.md'}\n" in output
    with pytest.raises(InvalidRequest, match="leave out --judge"):
        run("agree", str(path), "--judge", "rubric", "--out", str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llm", "LABS_LLM_PROVIDER"),
        ("reward_model", "labs reward-model activate"),
        ("nobody", "there are rubric, state, rule, local"),
    ],
)
@pytest.mark.slow
def test_a_judge_that_is_not_here_is_said_with_what_to_do(talks: str, tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        run("agree", talks, "--judge", name, "--dir", str(COLLECTIONS), "--data", str(tmp_path))


def test_a_judge_named_twice_and_a_file_that_is_not_there_are_refused(talks: str) -> None:
    with pytest.raises(InvalidRequest, match="each judge once"):
        run("agree", talks, "--judge", "state", "--judge", "state", "--dir", str(COLLECTIONS))
    with pytest.raises(InvalidRequest, match="There is no file"):
        run("agree", "nothing.jsonl")
