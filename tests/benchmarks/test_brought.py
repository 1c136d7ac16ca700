"""The table of a reward model that somebody brings, from a server or a folder: its outputs decide its row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import brought
from benchmarks.quality.data import llmbar_pairs
from reward_server.classifier.chat import chat_of
from reward_server.classifier.local import LocalClassifier
from tests.classifier.endpoint import Endpoint, classified, pooled
from tests.classifier.test_local import saved
from tests.reward_models.letters import LetterEncoder

pytestmark = pytest.mark.slow


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder; the better output says "fine" and is the shorter one."""
    rows = [
        {"input": f"How is bike {n}?", "output_1": f"Bike {n} is fine.", "output_2": f"No idea {n} at all.", "label": 1}
        for n in range(12)
    ]
    (tmp_path / "llmbar").mkdir()
    (tmp_path / "llmbar" / "natural.json").write_text(json.dumps(rows))
    monkeypatch.setattr(brought, "load_encoder", lambda name: LetterEncoder())
    return tmp_path


def columns(printed: str, judge: str) -> dict[str, str]:
    """The cells of a judge in the first table, by set."""
    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed.splitlines() if "|" in line]
    [head, *_] = [cells for cells in lines if cells[0] == "judge"]
    [own, *_] = [cells for cells in lines if cells[0] == judge]
    return {name.partition(" (")[0]: cell for name, cell in zip(head[1:], own[1:], strict=True)}


def likes_fine(body: dict[str, Any]) -> float:
    """In one sentence; a reply to another request is not fine."""
    asked, said = (body["messages"][place]["content"] for place in (0, -1))
    return 1.0 if "fine" in said and asked.split()[-1].rstrip("?") in said.split() else -1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("classify", classified),
        ("classify", lambda output: classified(-output, output)),
        ("pooling", lambda output: pooled([[0.3], [output]])),
    ],
)
def test_a_model_that_likes_what_people_like_is_always_right(
    pairs: Path, capsys: pytest.CaptureFixture[str], path: str, answer: Callable[[float], tuple[int, Any]]
) -> None:
    with Endpoint(lambda body: answer(likes_fine(body))) as server:
        given = ["--data", str(pairs), "--only", "llmbar", "--classifier", f"{server.url}/{path}", "--model", "rm"]
        brought.main(given)
    printed = capsys.readouterr().out
    own, longer = columns(printed, brought.MODEL), columns(printed, "the longer reply")
    assert {"as judged", "restyled", "easy", "normal"} < own.keys()
    assert set(own.values()) == {"1.000 [1.000, 1.000]"}
    assert longer["as judged"] == "0.000 [0.000, 0.000]"
    assert columns(printed, "the model less the cosine")["as judged"].startswith("+")
    assert "LLMBar by subset" in printed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen", "llama", "bert"])
def test_a_decoder_and_a_cross_encoder_in_a_folder_fill_the_same_table(
    pairs: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    folder = saved(pairs / "model", kind)
    brought.main(["--data", str(pairs), "--only", "llmbar", "--classifier", str(folder)])
    own = columns(capsys.readouterr().out, brought.MODEL)
    judged = llmbar_pairs(pairs / "llmbar")["natural"]
    classifier = LocalClassifier(folder)
    right = [classifier.output(chat_of(pair.chosen)) > classifier.output(chat_of(pair.rejected)) for pair in judged]
    assert own["as judged"].startswith(f"{sum(right) / len(right):.3f} ")
