"""`labs evaluate` asks the language model of the settings; what it fails on is an error in the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.attentive import attentive
from benchmarks.scripted_provider import Asked, Fail, Mode, Say, ScriptedProvider
from reward_server.cli.evaluate import evaluate
from reward_server.errors import ConfigurationError, LabsError

pytestmark = pytest.mark.usefixtures("shared_encoder")
COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
TALK = {
    "messages": [
        {"role": "user", "content": "Hello, my bike has a flat tyre, can you help me?"},
        {"role": "assistant", "content": "How did the flat tyre happen, if I may ask?"},
        {"role": "user", "content": "I rode over broken glass behind the station."},
    ]
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps(TALK) + "\n" for _ in range(3)))
    return path


def run(source: Path, name: str) -> list[dict[str, Any]]:
    app = typer.Typer()
    app.command()(evaluate)
    where = ["--collection", "bike-shop", "--scenario", "flat-tyre", "--dir", str(COLLECTIONS)]
    result = CliRunner().invoke(app, [str(source), *where, "--out", str(source.parent / name)])
    if result.exception and not isinstance(result.exception, (SystemExit, LabsError)):
        raise result.exception
    if isinstance(result.exception, ConfigurationError):
        raise result.exception
    return [json.loads(line) for line in (source.parent / name / "results.jsonl").read_text().splitlines()]


def asking(monkeypatch: pytest.MonkeyPatch, provider: ScriptedProvider) -> None:
    for name, value in {
        "PROVIDER": "vllm",
        "MODEL": "scripted",
        "BASE_URL": f"{provider.url}/v1",
        "RETRIES": "0",
        "DEADLINE_S": "20",
    }.items():
        monkeypatch.setenv(f"LABS_LLM_{name}", value)


@pytest.mark.slow
def test_the_model_of_the_settings_decides_and_is_asked_once_for_equal_rows(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = run(source, "without")
    with ScriptedProvider(attentive()) as provider:
        asking(monkeypatch, provider)
        judged = run(source, "judged")
    assert {row["status"] for row in judged} == {"success"}
    assert len({row["reward"] for row in judged}) == 1
    assert judged[0]["reward"] > without[0]["reward"]
    assert len(provider.asked) == 1


def test_a_failing_model_gives_errors_and_no_reward(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedProvider(Fail(Mode.REFUSAL)) as provider:
        asking(monkeypatch, provider)
        rows = run(source, "failed")
    assert {row["status"] for row in rows} == {"error"}
    assert {row["code"] for row in rows} == {"judge_failed"}
    assert all("reward" not in row for row in rows)
    assert {row["cause"] for row in rows} == {"refused"}
    folder = source.parent / "failed"
    assert json.loads((folder / "summary.json").read_text())["errors"] == {"judge_failed (refused)": 3}
    assert "| judge_failed (refused) | 3 |" in (folder / "report.md").read_text()


@pytest.mark.slow
def test_a_fenced_answer_is_read_as_a_bare_one(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedProvider(attentive()) as provider:
        asking(monkeypatch, provider)
        bare = run(source, "bare")
    answer = attentive()

    def thinking(asked: Asked) -> Say:
        return Say(f"<think>Let me see {{c1}}.</think>Here:\n```json\n{json.dumps(answer(asked))}\n```")

    with ScriptedProvider(thinking) as provider:
        asking(monkeypatch, provider)
        fenced = run(source, "fenced")
    assert [row["reward"] for row in fenced] == [row["reward"] for row in bare]


def test_a_missing_key_is_one_clear_line(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_LLM_PROVIDER", "anthropic")
    monkeypatch.setenv("LABS_LLM_MODEL", "some-model")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="LABS_LLM_API_KEY"):
        run(source, "keyless")
