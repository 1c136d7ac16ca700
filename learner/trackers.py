"""Metrics to other places than a file: TensorBoard's event files, Weights & Biases. Both are optional packages."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from learner.config import ConfigError
from learner.sections import LogSection


class Tracker(Protocol):
    """Takes figures as they come."""

    def write(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One record."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class TensorBoard:
    """Event files in `tensorboard/` of the run."""

    def __init__(self, folder: Path, after: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError("log.tensorboard: the package is not installed: pip install tensorboard") from None
        # What an interrupted run wrote after its last checkpoint is hidden, as it is cut from metrics.jsonl.
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=after + 1)

    def write(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One record."""
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


class WeightsAndBiases:
    """A run of W&B, of the same id whenever this folder goes on."""

    def __init__(self, folder: Path, settings: LogSection, config: Mapping[str, Any]) -> None:
        try:
            import wandb
        except ImportError:
            raise ConfigError("log.wandb: the package is not installed: pip install wandb") from None
        os.environ.setdefault("WANDB_SILENT", "true")
        self._run: Any = wandb.init(
            dir=str(folder),
            mode=settings.wandb if settings.wandb != "off" else "disabled",
            project=settings.wandb_project,
            name=folder.name,
            id=hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12],
            resume="allow" if settings.wandb == "online" else None,
            config=dict(config),
        )

    def write(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One record; W&B counts steps of its own, so ours is a figure beside the others."""
        self._run.log({"update": step, **{f"{kind}/{name}": value for name, value in values.items()}})

    def close(self) -> None:
        """End the run."""
        with contextlib.suppress(Exception):  # what is kept elsewhere must not fail over this
            self._run.finish()


def open_trackers(settings: LogSection, folder: Path, after: int, config: Mapping[str, Any]) -> list[Tracker]:
    """Those that the configuration names; `after` is the step the run goes on from."""
    found: list[Tracker] = []
    if settings.tensorboard:
        found.append(TensorBoard(folder, after))
    if settings.wandb != "off":
        found.append(WeightsAndBiases(folder, settings, config))
    return found
