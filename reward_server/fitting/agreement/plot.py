"""The plot of an agreement: a bar for each figure with its interval, and a table of judges where they are many.

Nine judges make 36 pairs of two; with a bar for each figure of each pair nobody could read the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reward_server.preferences.figures import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN = 0.03
"""Beside the outermost values, so that the axis cuts no end of an interval off."""
MOST_BARS = 12
"""With more bars of pairs of judges, these go into a table."""
BETWEEN = " and "
"""Stands between the names of two judges."""
_DARK = 0.6
"""Figures from here on stand on dark colours, where black cannot be read."""
Bars = list[tuple[str, Mapping[str, float]]]


def drawn(measured: Figures, names: Mapping[str, str]) -> Figure:
    """The figure; `names` are those of statistics."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bars = _bars(measured, ("labels", "pairs"), names)
    between = _bars(measured, ("between",), names)
    # A name that holds the word in between could be cut in two places.
    is_table = len(between) > MOST_BARS and all(pair.count(BETWEEN) == 1 for pair in measured["between"])
    bars = bars if is_table else bars + between
    judges = _judges(measured) if is_table else []
    height = 1.2 + 0.35 * max(1, len(bars))
    below = 1.6 + 0.45 * len(judges)
    figure = Figure(figsize=(8, height + below) if is_table else (8, height), layout="constrained")
    FigureCanvasAgg(figure)
    if not is_table:
        _draw_bars(figure.add_subplot(), bars)
        return figure
    if bars:
        top, bottom = figure.subplots(2, 1, height_ratios=(height, below))
        _draw_bars(top, bars)
    else:
        bottom = figure.add_subplot()
    _draw_table(bottom, measured["between"], judges, names)
    return figure


def _bars(measured: Figures, keys: tuple[str, ...], names: Mapping[str, str]) -> Bars:
    return [
        (f"{name}: {names[figure]}", values)
        for key in keys
        for name, figures in measured.get(key, {}).items()
        for figure, values in figures.items()
        if isinstance(values, dict) and not values.get("is_constant")
    ]


def _judges(measured: Figures) -> list[str]:
    return list(dict.fromkeys(name for pair in measured["between"] for name in pair.split(BETWEEN)))


def _draw_bars(axes: Axes, shown: Bars) -> None:
    """There is room for the ends of the intervals."""
    bars = shown[::-1]
    values = [figure["value"] for _, figure in bars]
    spread = [
        [max(0.0, figure["value"] - figure["low"]) for _, figure in bars],
        [max(0.0, figure["high"] - figure["value"]) for _, figure in bars],
    ]
    axes.barh([name for name, _ in bars], values, xerr=spread, color="#4a6fa5", ecolor="#999999", capsize=2)
    axes.axvline(0.0, color="#999999", linewidth=1)
    ends = [end for _, figure in bars for end in (figure["low"], figure["high"])]
    limits = (min([0.0, *ends]) - MARGIN, max([1.0, *ends]) + MARGIN)
    axes.set(xlabel="value with its 95 % interval", xlim=limits, title="Agreement of judges")


def _draw_table(
    axes: Axes, between: Mapping[str, Mapping[str, Any]], judges: list[str], names: Mapping[str, str]
) -> None:
    """One statistic of each two judges, as a coloured table with its numbers; intervals are in the report."""
    statistic = next(
        name for figures in between.values() for name, figure in figures.items() if isinstance(figure, dict)
    )
    rows = [[float("nan")] * len(judges) for _ in judges]
    for pair, figures in between.items():
        one, other = (judges.index(name) for name in pair.split(BETWEEN))
        value = figures.get(statistic)
        if isinstance(value, dict):
            rows[one][other] = rows[other][one] = value["value"]
    axes.imshow(rows, cmap="RdBu", vmin=-1.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(judges)), judges, rotation=35, ha="right")
    axes.set_yticks(range(len(judges)), judges)
    axes.set_title(f"Each two judges: {names[statistic]}")
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            if value == value:  # noqa: PLR0124 (not a number where a judge meets itself, or has no figure)
                ink = "white" if abs(value) > _DARK else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
