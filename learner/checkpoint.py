"""Checkpoints that are whole or not there, and resuming from the newest whole one.

A checkpoint is written beside its place, flushed to the disk, and renamed; a manifest with hashes
tells a damaged one apart. All randomness of a run is derived from its seed and the step, so there
is no generator state to save: weights, optimiser, step and config are everything.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

MANIFEST = "manifest.json"
PREFIX = "step-"


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    path: Path
    step: int

    @property
    def model_path(self) -> Path:
        """Model and tokenizer, as transformers loads them."""
        return self.path / "model"

    def optimizer_state(self) -> dict[str, Any]:
        """State of the optimiser."""
        state: dict[str, Any] = torch.load(self.path / "optimizer.pt", weights_only=True)
        return state


def save(
    folder: Path, step: int, *, model: Any, tokenizer: Any, optimizer: torch.optim.Optimizer, keep: int
) -> Checkpoint:
    """Write the checkpoint of `step` and drop old ones: the first and the newest `keep` stay."""
    final = folder / _name(step)
    temporary = folder / f".{final.name}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    model.save_pretrained(temporary / "model")
    tokenizer.save_pretrained(temporary / "model")
    torch.save(optimizer.state_dict(), temporary / "optimizer.pt")
    files = sorted(path for path in temporary.rglob("*") if path.is_file())
    hashes = {str(path.relative_to(temporary)): _sha256(path) for path in files}
    (temporary / MANIFEST).write_text(json.dumps({"step": step, "files": hashes}, indent=1))
    for path in [*files, temporary / MANIFEST, temporary]:
        _sync(path)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    _sync(folder)
    for old in [path for path in _folders(folder) if path.name != _name(0)][:-keep]:
        shutil.rmtree(old)
    return Checkpoint(final, step)


def at(folder: Path, step: int) -> Checkpoint | None:
    """The checkpoint of one step."""
    path = folder / _name(step)
    return Checkpoint(path, step) if _whole(path) == step else None


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint whose files are what its manifest says."""
    for path in reversed(_folders(folder)):
        step = _whole(path)
        if step is not None:
            return Checkpoint(path, step)
    return None


def _name(step: int) -> str:
    return f"{PREFIX}{step:06d}"


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*")) if folder.exists() else []


def _whole(path: Path) -> int | None:
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        if all(_sha256(path / name) == digest for name, digest in manifest["files"].items()):
            return int(manifest["step"])
    except (OSError, ValueError, KeyError):
        return None
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
