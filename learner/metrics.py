"""The record of a run: one JSON object per line, and a picture of the curve.

Lines are flushed as they are written. A resumed run first drops what an interrupted one wrote after
its last checkpoint, so a file never holds a step twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from learner.trackers import Tracker


class MetricsFile:
    """Appends records to `metrics.jsonl`, and hands them to trackers."""

    def __init__(self, path: Path, trackers: Sequence[Tracker] = (), *, writes: bool = True) -> None:
        self.path = path
        self._writes = writes
        self._trackers = trackers

    def close(self) -> None:
        """No more will come."""
        for tracker in self._trackers:
            tracker.close()

    def rewind(self, step: int) -> None:
        """Keep what belongs to the first `step` updates."""
        kept = [record for record in read_metrics(self.path) if record["step"] <= step]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(_line(record) for record in kept))
        os.replace(temporary, self.path)

    def write(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """Append one record."""
        if not self._writes:
            return
        rounded = {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}
        with self.path.open("a") as file:
            file.write(_line({"kind": kind, "step": step, **rounded}))
        for tracker in self._trackers:
            tracker.write(kind, step, rounded)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All records; a last line cut off by a crash is ignored, and so is a line that is no record."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def evaluations(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Update and figure of each evaluation, a larger figure being better: the held-out reward, in 0 to 1, or of a run
    on a file the held-out loss, negated."""
    return [
        (int(record["step"]), float(record["reward/mean"] if "reward/mean" in record else -record["update/loss"]))
        for record in records
        if record["kind"] == "eval"
    ]


def best_evaluation(path: Path) -> tuple[int, float] | None:
    """The best of these in a run's file; None before the first."""
    return max(evaluations(read_metrics(path)), key=lambda each: each[1], default=None)


def plot_curve(runs: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, title: str) -> None:
    """Training reward as a thin line and held-out reward with its error, for each run; a lone one needs no name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    figure, axes = pyplot.subplots(figsize=(8, 4.5), constrained_layout=True)
    for number, (name, records) in enumerate(runs.items()):
        colour, whose = f"C{number}", f"{name}: " if name else ""
        training = [
            (record["step"], record["reward/mean"])
            for record in records
            if record["kind"] == "train" and "reward/mean" in record
        ]
        held_out = [record for record in records if record["kind"] == "eval" and "reward/mean" in record]
        if training:
            axes.plot(*zip(*training, strict=True), color=colour, alpha=0.3, linewidth=1, label=f"{whose}training")
        axes.errorbar(
            [record["step"] for record in held_out],
            [record["reward/mean"] for record in held_out],
            yerr=[record["reward/standard_error"] for record in held_out],
            color=colour,
            marker="o",
            capsize=2,
            label=f"{whose}held-out seeds",
        )
    axes.set(xlabel="update", ylabel="mean reward", ylim=(0, 1), title=title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, allow_nan=False) + "\n"
