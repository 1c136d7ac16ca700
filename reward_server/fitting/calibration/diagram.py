"""Reliability diagrams: what was predicted beside what came true, before and after calibration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.fitting.calibration.calibration_fit import ReliabilityData
from reward_server.reward_models.calibration import Calibration
from reward_server.reward_models.reliability import Floats, equal_mass_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_REWARDS = 6


def draw(path: Path, calibration: Calibration, judged: Mapping[str, ReliabilityData]) -> None:
    """One row of two plots for each reward; a reward without labels shows its map instead."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    maps = calibration.maps[:MAX_REWARDS]
    figure = Figure(figsize=(8, 4 * len(maps)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(maps), 2, squeeze=False)
    for (left, right), curve in zip(grid, maps, strict=True):
        title = f"{curve.name}: {calibration.method}"
        if curve.name in judged:
            judgement = judged[curve.name]
            reliability_plot(left, judgement.before, judgement.observed, "before")
            reliability_plot(right, judgement.after, judgement.observed, "after, on rows the map has not seen")
            left.set_title(title)
        else:
            _map(left, calibration, curve.name)
            left.set_title(title)
            right.set_axis_off()
            right.text(0.0, 0.5, "No labels: this rescales, it does not calibrate.")
    figure.savefig(path, format="png", dpi=110)


def reliability_plot(axes: Axes, predicted: Floats, observed: Floats, title: str) -> None:
    """Points of equal mass: what was predicted, and how often it came true."""
    bins = equal_mass_bins(predicted, observed)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    points = [point.predicted for point in bins], [point.observed for point in bins]
    # Points at 0 and 1 lie on the frame, which would cut them in half.
    axes.plot(*points, marker="o", color="#4a6fa5", clip_on=False, zorder=3)
    axes.set(xlabel=f"predicted, {title}", ylabel="observed", xlim=(0, 1), ylim=(0, 1))


def _map(axes: Axes, calibration: Calibration, name: str) -> None:
    from numpy import linspace

    curve = calibration.map_of(name).curve
    low, high = (curve.x[0], curve.x[-1]) if curve.shape == "line" else (curve.pivot - 1, curve.pivot + 1)
    values = linspace(low, high, 200)
    axes.plot(values, curve.apply(values), color="#4a6fa5")
    axes.set(xlabel="reward", ylabel="rescaled")
