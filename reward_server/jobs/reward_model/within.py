"""Figures within one system: how well replies of one author are told apart, beside the pooled figures.

Where several systems wrote the replies, a judge that knows them by their manner has good pooled figures and is of no
use to any one of them, least of all to an agent that is being trained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from reward_server.reward_models.dataset import Labelled
from reward_server.reward_models.heads import Exact
from reward_server.reward_models.metrics import Resamples, Statistic, as_json, auc, spearman

WITHIN = "within systems"
MIN_ROWS = 5
"""Rows of a system that its figure is worth having of."""
_STATISTICS: Mapping[str, Statistic] = {"spearman": spearman, "auc": auc}


def within_systems(rows: Sequence[Labelled], values: Exact, labels: Exact, seed: int) -> dict[str, Any]:
    """Mean figures over systems, weighted by their rows; empty where fewer than two systems have enough of them."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.system:
            places[row.system].append(place)
    if sum(len(found) >= MIN_ROWS for found in places.values()) < 2:
        return {}
    codes = np.zeros(len(rows), dtype=np.intp)
    for number, found in enumerate(places.values(), 1):
        codes[found] = number
    resamples = Resamples.of([row.group for row in rows], seed)
    everything = np.arange(len(rows), dtype=np.float64)
    statistics: dict[str, Statistic] = {
        name: partial(_mean_within, statistic, codes, values, labels) for name, statistic in _STATISTICS.items()
    }
    figures = resamples.figures(statistics, everything, everything)
    return {"n": sum(map(len, places.values())), "systems": len(places), **as_json(figures)} if figures else {}


def _mean_within(
    statistic: Statistic, codes: np.ndarray[Any, np.dtype[np.intp]], values: Exact, labels: Exact, rows: Exact, _: Exact
) -> float | None:
    drawn = rows.astype(np.intp)
    found, sizes = [], []
    for code in np.unique(codes[drawn]):
        own = drawn[codes[drawn] == code]
        figure = statistic(values[own], labels[own]) if code and len(own) >= MIN_ROWS else None
        if figure is not None:
            found.append(figure)
            sizes.append(len(own))
    return float(np.average(found, weights=sizes)) if found else None
