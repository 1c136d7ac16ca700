"""`labs doctor --ask` says where a configured decision model reads worse than the local reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_server.cli import against_local
from reward_server.cli.doctor import _asked_decisions
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.settings import Settings
from tests.decisions.servers import Served

pytestmark = pytest.mark.usefixtures("shared_encoder")


def empty_headed(body: dict[str, Any]) -> dict[str, Any]:
    """Sees the open door, and nothing in any turn."""
    answers: dict[str, Any] = {}
    for name, asked in body["questions"].items():
        if asked["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.9 if "door" in asked["instructions"] else 0.1}
        else:
            shares = dict.fromkeys(asked["criteria"], 0.0) | {"none": 1.0}
            answers[name] = {"type": "choice", "choice": "none", "confidence": 1.0, "probabilities": shares}
    return {"model": "m", "answers": answers, "usage": {"input_tokens": 10, "output_tokens": 1}}


def settings(folder: Path, url: str) -> Settings:
    given: dict[str, Any] = {"decisions": "systemone", "decisions_model": "m", "decisions_url": url, "llm_retries": 0}
    return Settings(data=folder, reader="decisions", **given)


@pytest.fixture(autouse=True)
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the sample a dozen questions of one case: to compute what other cases are about takes its time."""
    whole = against_local._sample

    def few(rows: Sequence[ReaderRow]) -> list[ReaderRow]:
        first = whole(rows)[0].key
        asking = [row for row in rows if row.key == first and row.turn.kept_aside and row.turn.kind == "specific"]
        return asking[:12]

    monkeypatch.setattr(against_local, "_sample", few)


@pytest.mark.slow
def test_a_model_that_reads_worse_than_none_is_named_with_the_interval(tmp_path: Path) -> None:
    with Served(empty_headed) as server:
        found = _asked_decisions(settings(tmp_path, server.url))
    assert found.mark == "!", found.detail
    assert "LABS_READER=local" in str(found.mend)
    assert found.detail.startswith("m answered, p = 0.90; of 12 turns it understands 0, the local reader ")
    assert "(difference -" in found.detail
    assert ", 95 % -" in found.detail
    assert "calls" in found.detail


@pytest.mark.slow
def test_a_model_whose_turns_are_read_locally_reads_no_worse(tmp_path: Path) -> None:
    with Served(lambda body: empty_headed(body) if "text" in body["state"] else 401) as server:
        found = _asked_decisions(settings(tmp_path, server.url))
    assert found.mark == "✓", found.detail
    assert "turns read locally instead (" in found.detail
