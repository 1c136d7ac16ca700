"""What to watch while a reward rises: reward, language and distance from the reference policy, over the updates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Records = Sequence[Mapping[str, Any]]

WATCHED = (
    ("eval", "reward/mean", "held-out reward"),
    ("eval", "fluency/reference_nll", "nats per token under the reference policy"),
    ("eval", "fluency/broken", "share of broken turns"),
    ("eval", "fluency/repeated", "share of repeated turns"),
    ("train", "update/kl_reference", "KL to the reference policy (nats per token)"),
    ("train", "update/entropy", "entropy (nats per token)"),
)


def draw_watched(runs: Mapping[str, Sequence[Records]], path: Path) -> None:
    """One panel per figure, one line per run, one colour per name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7), constrained_layout=True)
    for place, (kind, name, title) in zip(axes.flat, WATCHED, strict=True):
        for colour, (run, repeats) in zip(
            itertools.cycle(f"C{number}" for number in range(10)), runs.items(), strict=False
        ):
            for number, records in enumerate(repeats):
                points = [(each["step"], each[name]) for each in records if each["kind"] == kind and name in each]
                if points:
                    label = None if number else run
                    place.plot(*zip(*points, strict=True), marker="o", markersize=3, color=colour, label=label)
        place.set(title=title, xlabel="update")
        place.set_ylim(bottom=0)
        place.xaxis.set_major_locator(MaxNLocator(integer=True))
        place.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=7)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
