"""Figures within one system: how well replies of one author are told apart, beside the pooled figures.

Where several systems wrote the replies, a judge that knows them by their manner has good pooled figures and is of no
use to any one of them, least of all to an agent that is being trained. Of pairs, those count that one system wrote both
sides of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from reward_server.fitting.reward_model.metrics import PAIR_STATISTICS, Resamples, Statistic, as_json, auc, spearman
from reward_server.reward_models.dataset import Labelled, PreferredPair
from reward_server.reward_models.heads import Exact

WITHIN = "within systems"
PAIRS_WITHIN = "pairs within systems"
MIN_ROWS = 5
"""Rows of a system that its figure is worth having of."""
_STATISTICS: Mapping[str, Statistic] = {"spearman": spearman, "auc": auc}


def within_systems(rows: Sequence[Labelled], values: Exact, labels: Exact, seed: int) -> dict[str, Any]:
    """Mean figures over systems, weighted by their rows; empty where fewer than two systems have enough of them."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.system:
            places[row.system].append(place)
    if sum(len(indices) >= MIN_ROWS for indices in places.values()) < 2:
        return {}
    codes = np.zeros(len(rows), dtype=np.intp)
    for number, indices in enumerate(places.values(), 1):
        codes[indices] = number
    resamples = Resamples.of([row.group for row in rows], seed)
    everything = np.arange(len(rows), dtype=np.float64)
    statistics: dict[str, Statistic] = {
        name: partial(_mean_within, statistic, codes, values, labels) for name, statistic in _STATISTICS.items()
    }
    figures = resamples.figures(statistics, everything, everything)
    return {"n": sum(map(len, places.values())), "systems": len(places), **as_json(figures)} if figures else {}


def pairs_within_systems(pairs: Sequence[PreferredPair], margins: Exact, targets: Exact, seed: int) -> dict[str, Any]:
    """Figures of the pairs that one system wrote both sides of; empty where there are too few, or only one system."""
    own = [place for place, (one, other) in enumerate(pair.systems for pair in pairs) if one and one == other]
    systems = {name for pair in pairs for name in pair.systems if name}
    if len(own) < MIN_ROWS or len(systems) < 2:
        return {}
    resamples = Resamples.of([pairs[place].group for place in own], seed)
    figures = resamples.figures(PAIR_STATISTICS, margins[own], targets[own])
    return {"n": len(own), "systems": len({pairs[place].systems[0] for place in own}), **as_json(figures)}


def _mean_within(
    statistic: Statistic, codes: np.ndarray[Any, np.dtype[np.intp]], values: Exact, labels: Exact, rows: Exact, _: Exact
) -> float | None:
    drawn = rows.astype(np.intp)
    figures, sizes = [], []
    for code in np.unique(codes[drawn]):
        own = drawn[codes[drawn] == code]
        figure = statistic(values[own], labels[own]) if code and len(own) >= MIN_ROWS else None
        if figure is not None:
            figures.append(figure)
            sizes.append(len(own))
    return float(np.average(figures, weights=sizes)) if figures else None
