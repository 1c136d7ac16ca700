"""Whether a tuned encoder is kept: only where it beats the frozen one beyond what chance would do.

Both are measured on the same held-out rows. Whole dialogues are resampled, the same ones for both, and the 95 %
interval of the difference has to lie above 0 (paired cluster bootstrap, Field & Welsh 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.measure import Measured
from reward_server.fitting.reward_model.metrics import Exact, Figure, Resamples, Statistic, pairwise, r2, spearman
from reward_server.reward_models.dataset import OVERALL, Dataset
from reward_server.reward_models.fitness import PAIRS

Metric = Literal["r2", "spearman", "pairwise"]
_STATISTICS: dict[Metric, Statistic] = {"r2": r2, "spearman": spearman, "pairwise": pairwise}


def verdict(
    frozen: Measured, tuned: Measured, held_out: Dataset, metric: Metric, seed: int
) -> tuple[bool, dict[str, Any]]:
    """Whether the tuned encoder wins, and what the card says of it.

    Raises:
        InvalidRequest: the held-out part has no such figure.
    """
    before, after = (held_out_figure(measured, metric) for measured in (frozen, tuned))
    if before is None or after is None:
        raise InvalidRequest(f"the held-out part has no {metric} to compare by: name another figure with --keep-by")
    gain = _gain(frozen, tuned, _groups(held_out, metric), metric, seed)
    wins = gain.low is not None and gain.low > 0.0
    found = {"frozen": round(before, 4), "tuned": round(after, 4), "difference": gain.to_json()}
    return wins, {"tried": True, "metric": metric, **found, "kept": "tuned" if wins else "frozen"}


def verdict_line(finetuning: dict[str, Any]) -> str:
    """The verdict of a card in words."""
    gain = finetuning["difference"]
    between = f" [{gain['low']:.3f}, {gain['high']:.3f}]" if "low" in gain else ", with too few dialogues to resample"
    why = "the tuned encoder wins only if the whole interval is above 0"
    return (
        f"fine-tuning: held-out {finetuning['metric']} {finetuning['frozen']:.3f} frozen, {finetuning['tuned']:.3f} "
        f"tuned, difference {gain['value']:+.3f}{between}; kept: {finetuning['kept']} ({why})"
    )


def default_metric(measured: Measured) -> Metric:
    """R² where there are labels, else the order of pairs."""
    return "r2" if OVERALL in measured.metrics else "pairwise"


def held_out_figure(measured: Measured, metric: Metric) -> float | None:
    """One figure of the overall head, or of the pairs."""
    figures = measured.metrics.get(PAIRS if metric == "pairwise" else OVERALL, {})
    found = figures.get(metric)
    return None if found is None else float(found["value"])


def _gain(frozen: Measured, tuned: Measured, groups: Sequence[str], metric: Metric, seed: int) -> Figure:
    """What tuning adds to the figure, with its interval; none where it cannot be resampled."""
    statistic, pairs = _STATISTICS[metric], metric == "pairwise"

    def difference(rows: Exact, _: Exact) -> float | None:
        places = rows.astype(np.intp)
        found = [
            statistic(measured.chances[places] - 0.5, measured.targets[places])
            if pairs
            else statistic(measured.predicted[places], measured.labels[places])
            for measured in (frozen, tuned)
        ]
        return None if found[0] is None or found[1] is None else found[1] - found[0]

    everything = np.arange(len(groups), dtype=np.float64)
    return Resamples.of(groups, seed).figure(difference, everything, everything) or Figure(0.0)


def _groups(held_out: Dataset, metric: Metric) -> list[str]:
    """The dialogue of each row that the figure is of."""
    if metric == "pairwise":
        return [pair.group for pair in held_out.preferred]
    return [row.group for row in held_out.labelled if OVERALL in row.scores]
