"""The state of an interrupted training on disk: tensors as safetensors, numbers as JSON, never a pickle.

A checkpoint belongs to one data set and one recipe; it is found again only by the same ones.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from reward_server.errors import InvalidRequest

TENSORS, NUMBERS = "state.safetensors", "state.json"
MIN_GAIN = 1e-4
"""A validation loss has to fall by more than this to count as better for stopping early."""


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a run between two epochs."""

    candidate: int = 0
    """Which strength of `l2` is being tried."""
    epoch: int = 0
    """Finished epochs of that candidate."""
    epochs: int = 0
    """Finished epochs of all candidates."""
    best_loss: float | None = None
    best_epochs: int = 0
    """After how many epochs, of all candidates, the validation loss was lowest."""
    candidate_loss: float | None = None
    since_better: int = 0
    history: tuple[tuple[float, ...], ...] = field(default=(), repr=False)

    def advanced(self, point: tuple[float, ...]) -> TrainingProgress:
        """After one more epoch; the last number of `point` is its validation loss."""
        loss = point[-1]
        is_best = self.best_loss is None or loss < self.best_loss
        is_better = self.candidate_loss is None or loss < self.candidate_loss - MIN_GAIN
        return replace(
            self,
            epoch=self.epoch + 1,
            epochs=self.epochs + 1,
            best_loss=loss if is_best else self.best_loss,
            best_epochs=self.epochs + 1 if is_best else self.best_epochs,
            candidate_loss=loss if is_better else self.candidate_loss,
            since_better=0 if is_better else self.since_better + 1,
            history=(*self.history, point),
        )

    def next_candidate(self) -> TrainingProgress:
        """At the beginning of the next candidate."""
        return replace(self, candidate=self.candidate + 1, epoch=0, candidate_loss=None, since_better=0)


State = tuple[TrainingProgress, Tensor, dict[str, Tensor], dict[str, Tensor]]


class TrainingCheckpoint:
    """A folder that holds the state of one run; `key` says of which."""

    def __init__(
        self, folder: Path, key: str, *, every: int = 10, beside: tuple[str, Callable[[], bytes]] | None = None
    ) -> None:
        """Args: beside: the name of a file that is kept with the state, and what makes it."""
        self._folder = folder
        self._key = key
        self._beside = beside
        self.every = every

    def keep(
        self, progress: TrainingProgress, weight: Tensor, moments: dict[str, Tensor], best: dict[str, Tensor]
    ) -> None:
        """Replace what is kept; a process killed meanwhile leaves the state before."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._keep_beside()
        tensors = {"weight": weight}
        tensors |= {f"moment.{name}": moment for name, moment in moments.items()}
        tensors |= {f"best.{name}": kept for name, kept in best.items()}
        # The numbers name the file with the tensors that go with them, so the pair changes in one step.
        name = f"{progress.epochs}-{TENSORS}"
        save_file({key: tensor.contiguous().clone() for key, tensor in tensors.items()}, self._folder / name)
        draft = self._folder / f"{NUMBERS}.new"
        draft.write_text(json.dumps({"key": self._key, "tensors": name, "progress": asdict(progress)}))
        os.replace(draft, self._folder / NUMBERS)
        for old in self._folder.glob(f"*-{TENSORS}"):
            if old.name != name:
                old.unlink()

    def _keep_beside(self) -> None:
        """Once, and before the state it belongs to."""
        if self._beside is None:
            return
        name, made = self._beside
        draft = self._folder / f"{name}.new"
        draft.touch(mode=0o600)  # it may hold what people said
        draft.write_bytes(made())
        os.replace(draft, self._folder / name)
        self._beside = None

    def inside(self, name: str) -> TrainingCheckpoint:
        """The checkpoint of a further run of the same key, in a folder of its own in this one."""
        return TrainingCheckpoint(self._folder / name, self._key, every=self.every)

    def exists(self) -> bool:
        """True if an interrupted run was kept."""
        return (self._folder / NUMBERS).exists()

    def restore(self) -> State | None:
        """The state that was kept, or None.

        Raises:
            InvalidRequest: it is of other data or another recipe, or cannot be read.
        """
        if not self.exists():
            return None
        try:
            numbers: dict[str, Any] = json.loads((self._folder / NUMBERS).read_text())
            tensors = load_file(self._folder / str(numbers["tensors"]))
            recorded = numbers["progress"]
            history = tuple(tuple(point) for point in recorded.pop("history"))
            progress = TrainingProgress(**recorded, history=history)
            weight = tensors.pop("weight")
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise InvalidRequest(
                f"the interrupted training in {self._folder} cannot be read: remove the folder and start again"
            ) from error
        if numbers["key"] != self._key:
            raise InvalidRequest(
                f"the interrupted training in {self._folder} is of other data or settings: use the same ones, or "
                "remove the folder and start again"
            )
        moments = {name.removeprefix("moment."): t for name, t in tensors.items() if name.startswith("moment.")}
        best = {name.removeprefix("best."): t for name, t in tensors.items() if name.startswith("best.")}
        return progress, weight, moments, best

    def remove(self) -> None:
        """Forget the run."""
        shutil.rmtree(self._folder, ignore_errors=True)
