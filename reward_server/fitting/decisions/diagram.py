"""Reliability curves of a decision model, before and after its maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reward_server.fitting.calibration.diagram import reliability_plot
from reward_server.fitting.decisions.fit import KindFit


def draw(path: Path, fits: Sequence[KindFit]) -> None:
    """One row of two plots for each kind of question that was measured."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    measured = [(fit.kind, fit.before, fit.after) for fit in fits]
    figure = Figure(figsize=(8, 4 * len(measured)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(measured), 2, squeeze=False)
    for (left, right), (kind, before, after) in zip(grid, measured, strict=True):
        left.set_title(kind)
        if before is not None and after is not None:
            reliability_plot(left, before.predicted, before.observed, "before")
            reliability_plot(right, after.predicted, after.observed, "after, on answers the map has not seen")
    figure.savefig(path, format="png", dpi=110)
