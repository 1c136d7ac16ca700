"""The report of a training or an evaluation: a page in Markdown with its plots, made from the card and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model import plots
from reward_server.fitting.reward_model.doubt import areas, sorts_errors
from reward_server.fitting.reward_model.head_training import Fitted
from reward_server.fitting.reward_model.measure import ModelFigures
from reward_server.reward_models.baselines import MEAN
from reward_server.reward_models.dataset import OVERALL
from reward_server.reward_models.fitness import PAIRS, PAIRS_UNSEEN, UNSEEN, rivals

_FIGURES = ("r2", "mse", "spearman", "pearson", "auc", "pairwise", "ece")
_GOOD_ORDER = 0.5
"""A rank correlation from which on it is worth saying that values are well ordered."""
_ANOTHER_MEAN = -0.25
"""R² of the mean where two parts' means are half a standard deviation apart."""
IN_SHORT = ("r2", "spearman", "auc", "pairwise")
"""What fits on a terminal."""
_FORMATS = {"mse": "#.3g"}
"""An MSE of labels in [0, 1] is small: three digits of it, or good models would all have the same."""
_NAMES = {
    "r2": "R²",
    "mse": "MSE",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "auc": "AUC",
    "pairwise": "pairs",
    "ece": "ECE",
}


def pictures(measured: ModelFigures, fitted: Fitted | None = None) -> dict[str, bytes]:
    """The plots that the figures allow, by file name."""
    images: dict[str, bytes] = {}
    if fitted is not None:
        kept = next(point for point in fitted.history if (point.l2, point.number) == (fitted.l2, fitted.epoch))
        images["learning_curve.png"] = plots.learning_curve(fitted.history, kept)
    if len(measured.labels):
        images["reliability.png"] = plots.reliability(measured.predicted, measured.labels, "Reliability of the score")
        own = measured.metrics[OVERALL]
        images["scatter.png"] = plots.scatter(
            measured.predicted, measured.labels, own, measured.baselines, measured.ceiling
        )
    if len(measured.chances):
        confidence = np.maximum(measured.chances, 1 - measured.chances)
        right = np.where(measured.chances >= 0.5, measured.targets, 1 - measured.targets)
        images["reliability_pairs.png"] = plots.reliability(confidence, right, "Reliability of preferences")
    if measured.risk is not None:
        errors = np.sort(np.abs(measured.predicted - measured.labels))
        best = np.cumsum(errors) / np.arange(1, len(errors) + 1)
        risk = measured.risk
        images["risk_coverage.png"] = plots.risk_coverage(risk.coverage, risk.risk, risk.random, best)
    return images


def figure_rows(measured: ModelFigures, wanted: Sequence[str] = _FIGURES) -> list[list[str]]:
    """Figures as rows of cells, the head first; the baselines and the agreement of people stand below the model."""
    present = [name for name in wanted if any(name in figures for figures in measured.metrics.values())]
    head = ["", "n", *(_NAMES[name] for name in present)]
    rows = [_row(_title(name), figures, present) for name, figures in measured.metrics.items()]
    rows += [_row(f"baseline: {name}", figures, present) for name, figures in measured.baselines.items()]
    if measured.ceiling:
        rows.append(_row("one person against the others", measured.ceiling, present))
    return [head, *rows]


def figures_table(measured: ModelFigures) -> str:
    """The rows as a table in Markdown."""
    head, *rows = figure_rows(measured)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def uncertainty_lines(figures: Mapping[str, Any]) -> list[str]:
    """The lines on the intervals, in words."""
    area = figures.get("aurc")
    if area is None:
        return []
    sorting = (
        f"Area under the risk-coverage curve {area['aurc']:.4f} (at random {area['random']:.4f}, best possible "
        f"{area['oracle']:.4f})."
    )
    if "coverage" not in figures:
        return [sorting]
    shares = ", ".join(f"{float(level):.0%}: {_shown(share)}" for level, share in figures["coverage"].items())
    return [
        f"Share of labels inside the interval, by its level: {shares}. "
        f"Mean standard deviation: {figures['epistemic_std']:.3f} epistemic, {figures['noise_std']:.3f} noise. "
        + sorting
    ]


def in_words(measured: ModelFigures) -> list[str]:
    """The meaning of figures that are easily misread: a baseline as good as the model, an R² below 0, of the
    model or of the mean of what it learned, and doubt that is not shown to sort errors."""
    lines = [*_against_baselines(measured), *_authors_in_words(measured)]
    own = measured.metrics.get(OVERALL, {})
    if "r2" in own and own["r2"]["value"] < 0.0:
        worse = f"further off than always predicting the mean (R² {own['r2']['value']:.2f})"
        if _orders(own):
            lines.append(
                "Use the values of this model only to compare conversations with each other: their order is good "
                f"(Spearman {own['spearman']['value']:.2f}), but they are {worse}."
            )
        else:
            lines.append(f"Do not activate this model: its values are {worse}, and their order is not reliable.")
    mean = measured.baselines.get(MEAN, {})
    if "r2" in mean and mean["r2"]["value"] < _ANOTHER_MEAN:
        lines.append(
            "The labels of these rows have another mean than those the model was trained on (R² of the baseline "
            f"`mean`: {mean['r2']['value']:.2f}). Every R² here says more about that than about the model."
        )
    return [*lines, *_doubt_in_words(measured)]


def _against_baselines(measured: ModelFigures) -> list[str]:
    """Says so where a line anyone could have drawn is as good as the model."""
    lines = []
    for rival in rivals(measured.metrics, measured.baselines):
        told = f"({rival.title} {rival.theirs:.3f}; the model {rival.own:.3f})"
        if round(rival.theirs, 3) >= round(rival.own, 3):
            lines.append(
                f"The simple baseline `{rival.name}` is at least as good as this model {told}: on these rows the model "
                "adds nothing to it."
            )
        elif not rival.is_sure:
            lines.append(
                f"This model is not shown to beat the simple baseline `{rival.name}` {told}; more rows may show it."
            )
    return lines


def _authors_in_words(measured: ModelFigures) -> list[str]:
    """Says so where the figures hang on having learned from the systems that wrote the replies."""
    lines = []
    for name, pooled, figure, title in (
        (UNSEEN, OVERALL, "spearman", "Spearman"),
        (PAIRS_UNSEEN, PAIRS, "pairwise", "share of pairs in the right order"),
    ):
        apart, together = (measured.metrics.get(dimension, {}).get(figure) for dimension in (name, pooled))
        if apart and together and apart.get("high", apart["value"]) < together["value"]:
            lines.append(
                f"This model recognises who wrote a reply: {title} {together['value']:.3f} on all rows, but "
                f"{apart['value']:.3f} on rows of systems that it did not learn from. An agent in training is such a "
                "system."
            )
    return lines


def _doubt_in_words(measured: ModelFigures) -> list[str]:
    area = measured.uncertainty.get("aurc")
    if area is None or sorts_errors(measured.uncertainty):
        return []
    if area["aurc"] < area["random"]:
        return [
            "The uncertainty of this model is not shown to tell where it is wrong on these rows "
            f"({areas(area)}); more rows may show it."
        ]
    return [
        "The uncertainty of this model does not show where it is wrong on these rows: of the rows it is surest of, the "
        f"errors are no smaller than of rows drawn at random ({areas(area)})."
    ]


def _orders(own: Mapping[str, Any]) -> bool:
    """True if values are in a good order, and not by chance as far as that is known."""
    order = own.get("spearman", {"value": 0.0})
    return bool(order["value"] >= _GOOD_ORDER and order.get("low", 1.0) > 0.0)


def _intervals(measured: ModelFigures) -> str:
    """The sentence on intervals: over too few groups there are none."""
    heads = [
        any("low" in figure for figure in figures.values() if isinstance(figure, Mapping))
        for figures in measured.metrics.values()
    ]
    if not any(heads):
        return "without intervals"
    return f"{'' if all(heads) else 'some '}with 95 % intervals from resampling whole dialogues"


def page(
    title: str, notes: list[str], measured: ModelFigures, images: Mapping[str, bytes], rows: str = "held-out dialogues"
) -> bytes:
    """report.md; `rows` says on what the figures are."""
    parts = [
        f"# {title}",
        "\n".join(f"- {note}" for note in notes),
        f"Figures on {rows}, {_intervals(measured)}. R² is 1 - MSE / variance: 0 is as good as always "
        "predicting the mean.",
        figures_table(measured),
        *in_words(measured),
        *uncertainty_lines(measured.uncertainty),
        *(f"![{name.removesuffix('.png').replace('_', ' ')}]({name})" for name in images),
    ]
    return ("\n\n".join(parts) + "\n").encode()


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a report with its plots; `InvalidRequest` where that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise InvalidRequest(f"{folder} cannot be written: {error.strerror or type(error).__name__}") from None


def _title(name: str) -> str:
    return "preference pairs" if name == PAIRS else name.replace("|", "/")


def _row(name: str, figures: Mapping[str, Any], present: list[str]) -> list[str]:
    n = figures.get("n")
    cells = [_shown(figures[column], _FORMATS.get(column, ".3f")) if column in figures else "–" for column in present]
    return [name, "–" if n is None else str(n), *cells]


def _shown(figure: Mapping[str, float], form: str = ".3f") -> str:
    if "low" not in figure:
        return f"{figure['value']:{form}}"
    return f"{figure['value']:{form}} [{figure['low']:{form}}, {figure['high']:{form}}]"
