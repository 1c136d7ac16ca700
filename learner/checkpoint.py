"""Checkpoints that are whole or not there, and resuming from the newest one.

A checkpoint is written beside its place, flushed to the disk, and renamed, so a crash leaves no half
of one; a manifest with hashes tells one that was damaged later. That is said, and never passed over:
a run that quietly went on from an older one would be another run. All randomness of a run is derived
from its seed and the step, so there is no generator state to save: weights, optimisers, step and
config are everything.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from learner.models import write

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


class UnwrittenError(OSError):
    """A checkpoint that cannot be written, such as on a full disk."""


class DamagedError(ValueError):
    """A checkpoint whose files are not what its manifest says."""


def save(
    folder: Path,
    step: int,
    *,
    model: Any,
    tokenizer: Any,
    optimizer: dict[str, Any],
    keep: int,
    best: int | None = None,
    more: Callable[[Path], None] | None = None,
) -> Checkpoint:
    """Write the checkpoint of `step` and drop old ones: the first, the newest `keep` and that of step `best` stay.

    `optimizer` is its state. `more` may write files of its own into the folder it gets. Raises UnwrittenError.
    """
    final = folder / _name(step)
    temporary = folder / f".{final.name}.{os.getpid()}"
    sweep(folder)
    try:
        temporary.mkdir(parents=True)
        write(model, tokenizer, temporary / "model")
        torch.save(optimizer, temporary / "optimizer.pt")
        if more is not None:
            more(temporary)
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        hashes = {str(path.relative_to(temporary)): _sha256(path) for path in files}
        (temporary / MANIFEST).write_text(json.dumps({"step": step, "files": hashes}, indent=1))
        for path in [*files, temporary / MANIFEST, temporary]:
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(temporary, final)
        _sync(folder)
    except torch.OutOfMemoryError:
        raise
    except (OSError, SafetensorError, RuntimeError) as error:  # torch raises the last where a disk is full
        raise UnwrittenError(f"the checkpoint {final} cannot be written: {str(error).splitlines()[0]}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for old in [path for path in _folders(folder) if path.name != _name(0)][:-keep]:
        if best is None or old.name != _name(best):
            shutil.rmtree(old)
    return Checkpoint(final, step)


def sweep(folder: Path) -> None:
    """Remove what a process that was killed while it wrote a checkpoint has left."""
    for left in folder.glob(f".{PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def at(folder: Path, step: int) -> Checkpoint | None:
    """The checkpoint of one step, if there is one; raises DamagedError."""
    path = folder / _name(step)
    return _opened(path) if path.exists() else None


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint, if there is one; raises DamagedError."""
    folders = _folders(folder)
    return _opened(folders[-1]) if folders else None


def _name(step: int) -> str:
    return f"{PREFIX}{step:06d}"


def _folders(folder: Path) -> list[Path]:
    """Those of this module: a folder with another name is somebody's own."""
    found = sorted(folder.glob(f"{PREFIX}*")) if folder.exists() else []
    return [path for path in found if path.name.removeprefix(PREFIX).isdecimal()]


def _opened(path: Path) -> Checkpoint:
    """The checkpoint here, every file compared with the manifest."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        files, step = manifest["files"], int(manifest["step"])
        wrong = [name for name, digest in files.items() if _sha256(path / name) != digest]
    except OSError as error:
        raise _damaged(path, f"{Path(error.filename or MANIFEST).name} is missing or cannot be read") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path, f"{MANIFEST} is not valid") from None
    if wrong:
        raise _damaged(path, f"{wrong[0]} has changed since it was written")
    return Checkpoint(path, step)


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(f"the checkpoint {path} is damaged: {what}; restore it, or move it away to continue without it")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
