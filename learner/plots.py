"""The pictures of a run's report: one panel for each thing to watch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

Records = Sequence[Mapping[str, Any]]
Series = tuple[str, str, str]
"""Kind of record, name of the figure, label."""

REWARD = "reward"
PANELS: tuple[tuple[str, tuple[Series, ...]], ...] = (
    (REWARD, (("train", "reward/mean", "training"), ("eval", "reward/mean", "held out"))),
    ("KL to the initial weights (nats per token)", (("train", "update/kl_reference", ""),)),
    ("entropy (nats per token)", (("train", "update/entropy", ""),)),
    ("clip share", (("train", "update/clip_share", ""),)),
    ("lengths", (("train", "turns/mean", "turns per episode"), ("train", "tokens/per_turn", "tokens per turn"))),
    (
        "fluency (share of held-out turns)",
        (("eval", "fluency/broken", "broken"), ("eval", "fluency/repeated", "repeated")),
    ),
    (
        "negative log-likelihood under the initial weights (nats per token)",
        (("eval", "fluency/reference_nll", "held out"),),
    ),
    ("gradient norm", (("train", "update/grad_norm", ""),)),
    ("loss", (("train", "update/loss", "training"), ("eval", "update/loss", "held out"))),
    (
        "preferences (held out)",
        (("eval", "preference/accuracy", "accuracy"), ("eval", "preference/margin", "margin (nats)")),
    ),
)
COLUMNS = 2


def panels(records: Records) -> str:
    """All panels for which there are figures, as one SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    drawn = [(title, found) for title, series in PANELS if (found := _found(records, series))]
    scores = sorted({name for record in records for name in record if name.startswith("score/")})
    if scores:
        named = tuple(("eval", name, name.removeprefix("score/")) for name in scores)
        drawn.insert(1, ("dimensions (held out)", _found(records, named)))
    split = _time_split(records)
    count = len(drawn) + bool(split)
    if not count:
        return "<p>No data yet.</p>"
    rows = -(-count // COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(10, 2.9 * rows), constrained_layout=True, squeeze=False)
    places = list(axes.flat)
    for place, (title, found) in zip(places, drawn, strict=False):
        if title == REWARD and (level := _untrained(records)) is not None:
            place.axhline(level, color="gray", linestyle="--", linewidth=1, label="before training")
        for label, points in found:
            place.plot(*zip(*points, strict=True), marker="o" if len(points) < 30 else None, markersize=3, label=label)
        _finish(place, title, legend=any(label for label, _ in found))
    if split:
        steps, parts = split
        places[len(drawn)].stackplot(steps, *parts.values(), labels=list(parts))
        _finish(places[len(drawn)], "seconds per update", legend=True)
    for place in places[count:]:
        place.set_axis_off()
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return out.getvalue()[out.getvalue().index("<svg") :]


def _untrained(records: Records) -> float | None:
    """The held-out reward of the policy before its first update: what a curve has to rise above."""
    found = (record.get("reward/mean") for record in records if record["kind"] == "eval" and record["step"] == 0)
    return next(found, None)


def _found(records: Records, series: Sequence[Series]) -> list[tuple[str, list[tuple[int, float]]]]:
    out = []
    for kind, name, label in series:
        points = [(record["step"], record[name]) for record in records if record["kind"] == kind and name in record]
        if points:
            out.append((label, points))
    return out


def _time_split(records: Records) -> tuple[list[int], dict[str, list[float]]] | None:
    training = [record for record in records if record["kind"] == "train" and "seconds/rollout" in record]
    if not training:
        return None
    generating = [record["seconds/generating"] for record in training]
    waiting = [max(record["seconds/rollout"] - record["seconds/generating"], 0.0) for record in training]
    updating = [record.get("seconds/update", 0.0) for record in training]
    parts = {"generating": generating, "waiting for the server": waiting, "update": updating}
    return [record["step"] for record in training], parts


def _finish(axes: Any, title: str, *, legend: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if legend:
        axes.legend(fontsize=8)
