"""`labs scenarios push`, `pull`, `diff` on a real server, and `draft` with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.attentive import attentive
from benchmarks.scripted_provider import Asked, ScriptedProvider
from reward_server.cli.scenarios import app
from reward_server.errors import ConfigurationError
from tests.trainer_client.live_server import LiveServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with LiveServer(tmp_path_factory.mktemp("live")) as live:
        yield live


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def test_a_folder_goes_to_the_server_and_comes_back(server: LiveServer, here: Path) -> None:
    run("new", "--rubric-only", "support/answers", "--dir", "own")
    said = run("push", "own/support", "--url", server.url)
    assert "support@development version 1: passed" in said
    assert run("diff", "own/support", "--url", server.url) == ""
    rubric = here / "own" / "support" / "answers.yaml"
    rubric.write_text(rubric.read_text().replace("points: 3", "points: 4", 1))
    assert "+    points: 4" in run("diff", "own/support", "--url", server.url, code=1)
    run("pull", "support", "--out", "back", "--url", server.url)
    assert "points: 3" in (here / "back" / "answers.yaml").read_text()


def drafting(asked: Asked) -> object:
    if "You help to write a rubric" not in asked.system:
        return attentive(lambda question: True)(asked)
    assert "late parcel" in asked.user
    criteria = [
        {"name": "Asks for order", "question": "Does the agent ask for the order?", "good": True, "points": 3},
        {"name": "Blames", "question": "Does the agent blame the customer?", "good": False, "points": 2},
    ]
    return {"title": "Help desk", "situation": "The agent answers customers.", "criteria": criteria}


def test_a_draft_is_one_until_graded_logs_pass(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "handbook.txt").write_text("What to do about a late parcel: ask for the order.")
    with pytest.raises(ConfigurationError, match="needs a language model"):
        run("draft", "answers", "--from", "handbook.txt")
    with ScriptedProvider(drafting) as provider:
        for name, value in {"PROVIDER": "vllm", "MODEL": "scripted", "BASE_URL": f"{provider.url}/v1"}.items():
            monkeypatch.setenv(f"LABS_LLM_{name}", value)
        run("draft", "answers", "--from", "handbook.txt")
        text = (here / "answers.yaml").read_text()
        assert "draft: true" in text
        assert "asks_for_order" in text
        assert "points: -2" in text
        assert "write logs of differing quality" in run("check", "answers.yaml")
        assert "draft: true" in (here / "answers.yaml").read_text()
    for name in ("PROVIDER", "MODEL", "BASE_URL"):
        monkeypatch.delenv(f"LABS_LLM_{name}")
    rules = "criteria:\n- {id: asks, check: {regex: {pattern: order}}}\n"
    (here / "answers.yaml").write_text(text.partition("criteria:")[0] + rules)
    logs = [("What is your order number?", 2), ("It is late, that happens.", 1)]
    lines = [
        {
            "grade": grade,
            "messages": [{"role": "user", "content": "It is late."}, {"role": "assistant", "content": said}],
        }
        for said, grade in logs
    ]
    (here / "answers.logs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("check", "answers.yaml")
    assert "draft" not in (here / "answers.yaml").read_text().partition("schema")[2]
