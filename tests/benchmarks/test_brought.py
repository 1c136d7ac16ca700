"""The table of a reward model that somebody brings: every set, every judge, and its outputs decide its row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import brought
from tests.classifier.endpoint import Endpoint, classified
from tests.reward_models.letters import LetterEncoder


@pytest.mark.slow
def test_a_model_that_likes_what_people_like_is_always_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"input": f"How is bike {n}?", "output_1": f"Bike {n} is fine.", "output_2": f"No idea {n} at all.", "label": 1}
        for n in range(12)
    ]
    (tmp_path / "llmbar").mkdir()
    (tmp_path / "llmbar" / "natural.json").write_text(json.dumps(rows))
    monkeypatch.setattr(brought, "load_encoder", lambda name: LetterEncoder())

    def script(body: dict[str, Any]) -> tuple[int, Any]:
        return classified(1.0 if "fine" in body["messages"][-1]["content"] else -1.0)

    with Endpoint(script) as server:
        given = ["--data", str(tmp_path), "--only", "llmbar", "--classifier", f"{server.url}/classify", "--model", "rm"]
        brought.main(given)
    printed = capsys.readouterr().out
    judged = next(line for line in printed.splitlines() if line.startswith("| **the model**"))
    assert judged.split("|")[2].strip() == "1.000 [1.000, 1.000]"
    longer = next(line for line in printed.splitlines() if line.startswith("| the longer reply"))
    assert longer.split("|")[2].strip() == "0.000 [0.000, 0.000]"
    assert "LLMBar by subset" in printed
