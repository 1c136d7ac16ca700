"""`labs calibrate --decisions`: maps fitted on labelled turns and verdicts, used by whatever decides afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reward_server.cli.main import app
from reward_server.errors import InvalidRequest
from scenarios.library import load_library
from tests.decisions.servers import Served

pytestmark = pytest.mark.usefixtures("shared_encoder")
QUESTION = "Is the agent right?"
COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
SCENARIOS = ("bike-shop/flat-tyre", "front-desk/lost-key")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def said(number: int) -> str:
    return f"Your tyre is on shelf {number}."


@pytest.fixture
def labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty verdicts, every other one a yes, and turns of two scenarios, half of which ask for something."""
    folder = tmp_path / "labelled"
    folder.mkdir()
    rows = [
        {"messages": [{"role": "assistant", "content": said(n)}], "verdicts": {QUESTION: n % 2 == 0}} for n in range(60)
    ]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("LABS_SCENARIOS", str(COLLECTIONS))
    library = load_library(COLLECTIONS)
    for collection, slug in (name.split("/") for name in SCENARIOS):
        topic = library.vault.open(collection, slug).case.topics[0].id
        asks = [{"turn": f"What is it, number {n}?", "asks": [topic], "kind": "specific"} for n in range(12)]
        others = [{"turn": f"Have you seen film {n}?", "asks": [], "kind": "foreign"} for n in range(12)]
        turns = [{"commits": [], **row} for row in asks + others]
        (folder / f"{collection}__{slug}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in turns))
    return folder


def too_sure(body: dict[str, Any]) -> dict[str, Any]:
    """Says .98 of what is right in three of four verdicts, and takes most questions for being about nothing."""
    answers: dict[str, Any] = {}
    for name, asked in body["questions"].items():
        if asked["type"] == "noul":
            number = int(body["state"]["conversation"][-1]["agent"].rstrip(".").split()[-1])
            right = (number % 2 == 0) != (number % 4 == 3 or number % 8 == 0)
            answers[name] = {"type": "noul", "noul": 0.98 if right else 0.02}
            continue
        none, *others = asked["criteria"]
        asks = body["state"]["agent_turn"]["s1"].startswith("What")
        shares = {none: 0.6, others[0]: 0.4} if asks else {none: 0.9, others[0]: 0.1}
        probabilities = dict.fromkeys(asked["criteria"], 0.0) | shares
        answers[name] = {"type": "choice", "choice": none, "confidence": 0.6, "probabilities": probabilities}
    return {"model": "m", "answers": answers, "usage": {"input_tokens": 7, "output_tokens": 1}}


def asking(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name, value in {"DECISIONS": "systemone", "DECISIONS_URL": url, "DECISIONS_MODEL": "m"}.items():
        monkeypatch.setenv(f"LABS_{name}", value)


@pytest.mark.slow
def test_maps_are_fitted_reported_and_used(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("LABS_DATA", str(data))
    own = str(labelled / "own.jsonl")
    with Served(too_sure) as server:
        asking(monkeypatch, server.url)
        before = run("judges", "evaluate", own, "--judge", "systemone")
        printed = run("calibrate", str(labelled), "--decisions")
        after = run("judges", "evaluate", own, "--judge", "systemone")
    [path] = (data / "decisions").glob("*.json")
    kept = json.loads(path.read_text())
    assert kept["model_version"].startswith("systemone/m@")
    assert set(kept["kinds"]) == {"criterion", "topic"}
    assert kept["kinds"]["criterion"]["slope"] < 0.7, "it was too sure"
    assert kept["kinds"]["topic"]["bias"] < 0, "it took too much for nothing"
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    row = next(line for line in printed.splitlines() if "topic" in line)
    assert "50% to 100%" in row
    assert "needs 40 answers, 10 of either side; has 48, 48 of no" in printed, "nothing was promised in any turn"
    assert "calls" in printed
    errors = [next(line for line in out.splitlines() if "calibration error" in line) for out in (before, after)]
    wrong = [float(line.split("|")[2]) for line in errors]
    assert wrong[1] < wrong[0] / 2


def test_what_cannot_be_calibrated_is_said(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_DATA", str(tmp_path / "data"))
    with pytest.raises(InvalidRequest, match="set LABS_DECISIONS"):
        run("calibrate", "--decisions")
    with pytest.raises(InvalidRequest, match="can be combined with DATA and --data only"):
        run("calibrate", "--decisions", "--method", "isotonic")
    with Served(lambda body: 401) as server:
        asking(monkeypatch, server.url)
        with pytest.raises(InvalidRequest, match="No map was written for systemone/m@"):
            run("calibrate", str(labelled), "--decisions")
    assert not (tmp_path / "data" / "decisions").exists()
