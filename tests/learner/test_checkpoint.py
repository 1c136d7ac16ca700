"""Checkpoints are whole or not there."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from learner import checkpoint
from learner.config import ConfigError, read
from learner.folder import settle_config
from learner.metrics import MetricsFile, read_metrics
from learner.models import load_given, write
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


@pytest.mark.parametrize("damaged", ["model/model.safetensors", "optimizer.pt"])
def test_a_full_disk_is_one_line_and_nothing_of_the_checkpoint_stays(tmp_path: Path, damaged: str) -> None:
    """A limit on the size of files, which the optimiser's is above and the weights are above or below."""
    older = save(tmp_path, 1)
    weights = (older.model_path / "model.safetensors").stat().st_size
    model = policy(WORDS).model
    moments = {"moments": torch.zeros(weights)}  # four bytes each
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = weights // 2 if damaged.startswith("model") else weights * 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(checkpoint.UnwrittenError, match=r"the checkpoint .*step-000002 cannot be written: .+"):
            checkpoint.save(tmp_path, 2, model=model, tokenizer=WORDS, optimizer=moments, keep=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    assert checkpoint.newest(tmp_path) == older


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".step-000002.123").mkdir()
    (tmp_path / ".step-000002.123" / "optimizer.pt").write_bytes(b"half")
    saved = save(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == [saved.path.name]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_model_is_one_line(tmp_path: Path, name: str) -> None:
    write(policy(WORDS).model, WORDS, tmp_path)
    damaged = tmp_path / name
    damaged.write_bytes(damaged.read_bytes()[:200] if name.endswith("safetensors") else b"{}")
    with pytest.raises(ConfigError, match=r"model\.path: .*: the folder contains no model that can be loaded"):
        load_given(str(tmp_path))


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


def test_a_folder_of_another_name_is_no_checkpoint(tmp_path: Path) -> None:
    saved = save(tmp_path, 1)
    (tmp_path / "step-final").mkdir()
    assert checkpoint.newest(tmp_path) == saved


@pytest.mark.parametrize("content", ['{"sha', "[]", "3"])
def test_a_damaged_configuration_of_a_run_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=r"config\.json is damaged; restore it"):
        settle_config(read({}), tmp_path, is_begun=True)


def test_a_line_that_is_no_record_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "train", "step": 1}\n3\n[]\n')
    MetricsFile(path).rewind(1)
    assert read_metrics(path) == [{"kind": "train", "step": 1}]


WRITES = """
import sys
from pathlib import Path
from learner.models import write
from tests.learner.small import policy, tokenizer
words = tokenizer()
write(policy(words).model, words, Path(sys.argv[1]))
assert "deepspeed" in sys.modules
"""


@pytest.mark.slow
def test_writing_a_model_says_nothing_where_deepspeed_is_installed(tmp_path: Path) -> None:
    """transformers imports it for that; on a CPU it would say that it found no GPU, on standard output."""
    variables = {name: value for name, value in os.environ.items() if name != "DS_ACCELERATOR"}
    done = subprocess.run(
        [sys.executable, "-c", WRITES, str(tmp_path / "model")],
        env={**variables, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert "DeepSpeed" not in done.stderr
    assert (tmp_path / "model" / "config.json").exists()
