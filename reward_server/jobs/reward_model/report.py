"""The report of a training or an evaluation: a page in Markdown with its plots, made from the card and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.jobs.reward_model.measure import PAIRS, Measured
from reward_server.reward_models import plots
from reward_server.reward_models.dataset import OVERALL
from reward_server.reward_models.training import Fitted

_FIGURES = ("r2", "mse", "spearman", "pearson", "pairwise", "ece")
IN_SHORT = ("r2", "spearman", "pairwise")
"""What fits on a terminal."""
_NAMES = {"r2": "R²", "mse": "MSE", "spearman": "Spearman", "pearson": "Pearson", "pairwise": "pairs", "ece": "ECE"}


def pictures(measured: Measured, fitted: Fitted | None = None) -> dict[str, bytes]:
    """The plots that the figures allow, by file name."""
    found: dict[str, bytes] = {}
    if fitted is not None:
        kept = next(p for p in fitted.history if (p.l2, p.number) == (fitted.l2, fitted.epoch))
        found["learning_curve.png"] = plots.learning_curve(fitted.history, kept)
    if len(measured.labels):
        found["reliability.png"] = plots.reliability(measured.predicted, measured.labels, "Reliability of the score")
        own = measured.metrics[OVERALL]
        found["scatter.png"] = plots.scatter(
            measured.predicted, measured.labels, own, measured.baselines, measured.ceiling
        )
    if len(measured.chances):
        confidence = np.maximum(measured.chances, 1 - measured.chances)
        right = np.where(measured.chances >= 0.5, measured.targets, 1 - measured.targets)
        found["reliability_pairs.png"] = plots.reliability(confidence, right, "Reliability of preferences")
    if measured.risk is not None:
        errors = np.sort(np.abs(measured.predicted - measured.labels))
        best = np.cumsum(errors) / np.arange(1, len(errors) + 1)
        risk = measured.risk
        found["risk_coverage.png"] = plots.risk_coverage(risk.coverage, risk.risk, risk.random, best)
    return found


def figure_rows(measured: Measured, wanted: Sequence[str] = _FIGURES) -> list[list[str]]:
    """Figures as rows of cells, the head first; the baselines and the agreement of people stand below the model."""
    present = [name for name in wanted if any(name in figures for figures in measured.metrics.values())]
    head = ["", "n", *(_NAMES[name] for name in present)]
    rows = [_row(_title(name), figures, present) for name, figures in measured.metrics.items()]
    rows += [_row(f"baseline: {name}", figures, present) for name, figures in measured.baselines.items()]
    if measured.ceiling:
        rows.append(_row("one person against the others", measured.ceiling, present))
    return [head, *rows]


def figures_table(measured: Measured) -> str:
    """The rows as a table in Markdown."""
    head, *rows = figure_rows(measured)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def uncertainty_lines(figures: Mapping[str, Any]) -> list[str]:
    """What is known of the intervals, in words."""
    if not figures:
        return []
    shares = ", ".join(f"{float(level):.0%}: {_shown(share)}" for level, share in figures["coverage"].items())
    area = figures["aurc"]
    return [
        f"Share of held-out labels inside the interval of a level: {shares}. "
        f"Mean standard deviation: {figures['epistemic_std']:.3f} epistemic, {figures['noise_std']:.3f} noise. "
        f"Area under the risk-coverage curve {area['aurc']:.4f} (at random {area['random']:.4f}, best possible "
        f"{area['oracle']:.4f})."
    ]


def page(title: str, notes: list[str], measured: Measured, images: Mapping[str, bytes]) -> bytes:
    """report.md"""
    parts = [
        f"# {title}",
        "\n".join(f"- {note}" for note in notes),
        "Figures on held-out dialogues, with 95 % intervals from resampling whole dialogues. R² is 1 - MSE / variance: "
        "0 is as good as always predicting the mean.",
        figures_table(measured),
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
    cells = [_shown(figures[each]) if each in figures else "–" for each in present]
    return [name, "–" if n is None else str(n), *cells]


def _shown(figure: Mapping[str, float]) -> str:
    if "low" not in figure:
        return f"{figure['value']:.3f}"
    return f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"
