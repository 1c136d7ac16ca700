"""Callbacks of a program of your own while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from learner.run import Run


class TrainerCallback:
    """Base class with empty methods: override those that you need. Only the first of several processes calls them.

    `values` may be added to, with numbers: what a callback adds is written to the metrics with the rest. A callback
    that raises ends the run, which is saved at its last checkpoint.
    """

    def on_start(self, run: Run) -> None:
        """Before the first update of this process, or of a continued run."""

    def on_step(self, run: Run, values: dict[str, Any]) -> None:
        """After an update, before its metrics are written; `run.step` is its number."""

    def on_evaluation(self, run: Run, values: dict[str, Any]) -> None:
        """After an evaluation, before its metrics are written."""

    def on_checkpoint(self, run: Run) -> None:
        """After the checkpoint of `run.step` is complete on disk."""

    def on_end(self, run: Run) -> None:
        """After the last update of this process, also where the run was asked to end early."""


class Callbacks(TrainerCallback):
    """Several callbacks as one, in order."""

    def __init__(self, callbacks: tuple[TrainerCallback, ...] = ()) -> None:
        self._callbacks = callbacks

    def on_start(self, run: Run) -> None:
        """Tell each."""
        for callback in self._callbacks:
            callback.on_start(run)

    def on_step(self, run: Run, values: dict[str, Any]) -> None:
        """Tell each."""
        for callback in self._callbacks:
            callback.on_step(run, values)

    def on_evaluation(self, run: Run, values: dict[str, Any]) -> None:
        """Tell each."""
        for callback in self._callbacks:
            callback.on_evaluation(run, values)

    def on_checkpoint(self, run: Run) -> None:
        """Tell each."""
        for callback in self._callbacks:
            callback.on_checkpoint(run)

    def on_end(self, run: Run) -> None:
        """Tell each."""
        for callback in self._callbacks:
            callback.on_end(run)
