"""Checkpoints are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from learner import checkpoint
from tests.learner.small import policy, tokenizer

WORDS = tokenizer()


def save(folder: Path, step: int, keep: int = 2) -> checkpoint.Checkpoint:
    model = policy(WORDS, seed=step).model
    optimizer = torch.optim.AdamW(model.parameters())
    return checkpoint.save(folder, step, model=model, tokenizer=WORDS, optimizer=optimizer.state_dict(), keep=keep)


def test_the_newest_whole_checkpoint_is_found(tmp_path: Path) -> None:
    save(tmp_path, 1)
    saved = save(tmp_path, 2)
    assert checkpoint.newest(tmp_path) == saved
    assert set(saved.optimizer_state()) == {"state", "param_groups"}
    assert checkpoint.newest(tmp_path / "nothing") is None


@pytest.mark.parametrize("damage", ["missing", "changed", "manifest"])
def test_a_damaged_checkpoint_is_named_and_not_passed_over(tmp_path: Path, damage: str) -> None:
    _, newer = save(tmp_path, 1), save(tmp_path, 2)
    if damage == "missing":
        (newer.path / "optimizer.pt").unlink()
    elif damage == "changed":
        path = newer.model_path / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    else:
        (newer.path / checkpoint.MANIFEST).write_text("{")
    with pytest.raises(checkpoint.DamagedError, match=r"step-000002 is damaged: .*(optimizer|safetensors|manifest)"):
        checkpoint.newest(tmp_path)


def test_a_write_that_fails_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = save(tmp_path, 1)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="space"):
        save(tmp_path, 2)
    assert checkpoint.newest(tmp_path) == older


def test_the_first_and_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (0, 5, 10, 15):
        save(tmp_path, step, keep=2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-000000", "step-000010", "step-000015"]
    first = checkpoint.at(tmp_path, 0)
    assert first is not None
    assert first.step == 0
    assert checkpoint.at(tmp_path, 5) is None


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (tmp_path / "step-000001" / "optimizer.pt").write_bytes(b"")
    saved = save(tmp_path, 1)
    assert checkpoint.newest(tmp_path) == saved
