"""Plots of a training, as PNG bytes: how it went, how calibrated it is, how it stands beside simple baselines.

Drawn without a display and without the library's global state, so that they may be drawn in any thread.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reward_server.reward_models.heads import Exact

if TYPE_CHECKING:
    from reward_server.fitting.reward_model.head_training import Epoch

BINS = 10
CHOSEN, TRIED = "C0", "0.7"
"""Colours of the penalty that was chosen and of those that were not."""


def learning_curve(history: Sequence[Epoch], kept: Epoch) -> bytes:
    """Training and validation loss by epoch; the penalty that was chosen stands out from those that were tried."""
    return _png(learning_curve_figure(history, kept))


def learning_curve_figure(history: Sequence[Epoch], kept: Epoch) -> Figure:
    """The same, not yet drawn. Penalties that were tried and left are thin and grey, named together."""
    figure, axes = _figure("Learning curve", "epoch", "loss (1 = predicting the mean)")
    others = [l2 for l2 in dict.fromkeys(point.l2 for point in history) if l2 != kept.l2]
    for l2 in others:
        points = [point for point in history if point.l2 == l2]
        axes.plot(
            [point.number for point in points],
            [point.validation_loss for point in points],
            color=TRIED,
            linewidth=0.9,
            zorder=1,
        )
    if others:
        tried = ", ".join(f"{l2:g}" for l2 in sorted(others))
        axes.plot([], [], color=TRIED, linewidth=0.9, label=f"validation, left: l2 = {tried}")
    chosen = [point for point in history if point.l2 == kept.l2]
    numbers = [point.number for point in chosen]
    losses = {
        "validation": [point.validation_loss for point in chosen],
        "training": [point.training_loss for point in chosen],
    }
    for (name, loss), style in zip(losses.items(), ("-", ":"), strict=True):
        label = f"{name}, chosen: l2 = {kept.l2:g}"
        axes.plot(numbers, loss, style, color=CHOSEN, linewidth=2.0, zorder=3, label=label)
    axes.plot([kept.number], [kept.validation_loss], "k*", markersize=12, zorder=4, label=f"kept: epoch {kept.number}")
    _in_view(axes, [point.validation_loss for point in chosen] + [point.training_loss for point in chosen])
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles[1:], handles[0]] if others else handles, [*labels[1:], labels[0]] if others else labels,
                fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)  # fmt: skip
    return figure


def _in_view(axes: Any, losses: Sequence[float]) -> None:
    """Show the chosen curves whole; a penalty that was left because it went astray must not flatten them."""
    low, high = min(losses), max(losses)
    margin = max(high - low, 1e-3) * 0.25
    axes.set_ylim(low - margin, high + margin)


def reliability(predicted: Exact, observed: Exact, title: str) -> bytes:
    """Mean outcome against mean prediction in ten bins of equal count; on the diagonal, numbers mean what they say."""
    figure, axes = _figure(title, "predicted", "observed")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    bins = np.array_split(np.argsort(predicted, kind="stable"), min(BINS, max(1, len(predicted))))
    points = [(predicted[rows].mean(), observed[rows].mean(), len(rows)) for rows in bins if len(rows)]
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], "o-")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    return _png(figure)


def scatter(
    predicted: Exact, labels: Exact, model: Mapping[str, Any], baselines: Mapping[str, Any], ceiling: Mapping[str, Any]
) -> bytes:
    """Held-out labels against predictions, with the rank correlation of the baselines and of people in the legend."""
    figure, axes = _figure("Held-out conversations", "predicted", "label")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.scatter(predicted, labels, s=12, alpha=0.5)
    lines = [("this model", model), *baselines.items(), ("one person", ceiling)]
    for name, figures in lines:
        # The mean ranks nothing, and most data has one rater: what is not known is not named.
        if figure := figures.get("spearman"):
            axes.plot([], [], " ", label=f"{name}: Spearman {figure['value']:.2f}")
    axes.legend(fontsize=8, loc="upper left", handlelength=0)
    return _png(figure)


def risk_coverage(shares: Exact, risk: Exact, random: float, oracle: Exact) -> bytes:
    """Mean error of the most certain part of the rows, against how large that part is."""
    figure, axes = _figure("Risk and coverage", "share of conversations, most certain first", "mean absolute error")
    axes.plot(shares, risk, label="by uncertainty")
    axes.plot(shares, oracle, linestyle=":", color="grey", label="by the error itself")
    axes.axhline(random, linestyle="--", color="grey", label="at random")
    axes.legend(fontsize=8)
    return _png(figure)


def _figure(title: str, x: str, y: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(5.5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    return figure, axes


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()
