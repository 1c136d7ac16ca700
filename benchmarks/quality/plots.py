"""The diagrams of the report, as PNG files beside it; nothing is drawn unless a folder was set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.figures import Floats
from reward_server.reward_models.reliability import FigureInterval, equal_mass_bins
from reward_server.reward_models.reliability import risk_coverage as curve_of


@dataclass
class _Target:
    folder: Path | None = None


_target = _Target()


def draw_into(folder: Path | None) -> None:
    """Where diagrams go from now on; None draws nothing."""
    _target.folder = folder


def reliability(title: str, name: str, shown: Mapping[str, Floats], observed: Floats) -> None:
    """Stated chances against observed shares, in bins of equal size."""
    figure, axes = _axes(title, "stated chance", "observed share")
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="exact")
    for label, chances in shown.items():
        bins = equal_mass_bins(chances, observed)
        axes.plot([each.predicted for each in bins], [each.observed for each in bins], marker="o", label=label)
    axes.legend()
    _save(figure, name)


def risk_coverage(title: str, name: str, certainty: Floats, errors: Floats) -> None:
    """The error rate of the surest part, beside random order."""
    curve = curve_of(-certainty, errors)
    figure, axes = _axes(title, "share of the pairs decided", "share of them decided wrongly")
    axes.plot(curve.coverage, curve.risk, label="surest first")
    axes.axhline(curve.random, color="0.6", linestyle="--", label="in random order")
    axes.set_ylim(0.0, 0.6)
    axes.legend()
    _save(figure, name)


def bars(
    title: str, name: str, rows: Sequence[tuple[str, FigureInterval]], marks: Mapping[str, Sequence[float]]
) -> None:
    """Figures with their intervals; `marks` are other figures per row (a baseline, a ceiling)."""
    figure, axes = _axes(title, "", "")
    places = list(range(len(rows)))
    values = [interval.value for _, interval in rows]
    below = [interval.value - interval.low for _, interval in rows]
    above = [interval.high - interval.value for _, interval in rows]
    axes.barh(places, values, xerr=[below, above], color="#7aa6c2", capsize=3)
    for label, marker in zip(marks, ("|", "x", "d", "^"), strict=False):
        axes.scatter(marks[label], places, marker=marker, s=90, color="black", label=label, zorder=3)
    axes.set_yticks(places, [label for label, _ in rows])
    axes.set_xlim(0.0, 1.0)
    axes.invert_yaxis()
    if marks:
        figure.legend(loc="outside lower center", fontsize=8, ncols=len(marks))
    _save(figure, name)


def _axes(title: str, across: str, up: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    # A figure of its own needs neither a display nor a global backend.
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return figure, axes


def _save(figure: Any, name: str) -> None:
    if _target.folder is not None:
        _target.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(_target.folder / f"{name}.png", dpi=110)
