"""Writes what was measured: `agreement.json`, `report.md` and a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.plot import drawn
from reward_server.preferences.figures import Figures
from reward_server.reward_models.artefact import refuse_taken
from scenarios.spelling import counted

if TYPE_CHECKING:
    pass

JSON, REPORT, PLOT = "agreement.json", "report.md", "agreement.png"
NONE = "–"
NAMES = {
    "spearman": "Spearman",
    "kappa": "Cohen's kappa",
    "weighted_kappa": "quadratic kappa",
    "accuracy": "pairwise accuracy",
    "position_consistency": "position consistency",
    "ties": "share of ties",
    "same_winner": "same winner",
}


def refuse_written(folder: Path) -> None:
    """`InvalidRequest` for a folder that holds something: a report takes long to make, and is not written over."""
    try:
        refuse_taken(folder)
    except InvalidRequest as taken:
        raise InvalidRequest(f"{taken.message}, or --force") from None


def write(folder: Path, measured: Figures) -> None:
    """All three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(measured, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    _plot(folder / PLOT, measured)
    (folder / REPORT).write_text(markdown(measured), encoding="utf-8")


def markdown(measured: Figures) -> str:
    """The report; brackets are 95 % intervals, drawn by dialogue."""
    lines = [
        f"# Agreement of {counted(len(measured['judges']), 'judge')}",
        "",
        f"{counted(measured['entries'], 'row')} of {counted(measured['dialogues'], 'dialogue')}; "
        "brackets are 95 % intervals over dialogues.",
        "",
    ]
    for key, title, head in (
        ("labels", "With human labels", "judge"),
        ("pairs", "With human winners", "judge"),
        ("between", "With each other", "judges"),
    ):
        if any(measured.get(key, {}).values()):
            table = _table(head, measured[key])
            lines += [f"## {title}", "", *table, ""]
            if any(NONE in line for line in table):
                lines += [f"{NONE}: one of the two gives every row the same value, or there are too few rows.", ""]
    if measured.get("injection"):
        lines += [
            "## Attacks",
            "",
            "Each text is added to every turn of the agent. Share of conversations that then score",
        ]
        lines += ["higher, of those that have a score with and without it; lost scores are counted apart.", ""]
        lines += [*_attacks(measured["injection"]), ""]
    if measured.get("noise"):
        lines += [
            "## Noise",
            "",
            "| judge | standard deviation of two readings | its own uncertainty, mean |",
            "|---|---|---|",
        ]
        for name, figures in measured["noise"].items():
            cells = [f"{figures[k]:.4f}" if k in figures else "not known" for k in ("repeat_std", "mean_uncertainty")]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    if measured.get("failures"):
        lines += ["## Not scored", "", "| judge and reason | conversations |", "|---|---|"]
        lines += [f"| {name} | {count} |" for name, count in measured["failures"].items()]
        lines.append("")
    return "\n".join([*lines, f"![Figures]({PLOT})", ""])


def _table(head: str, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(name for figures in rows.values() for name in figures))
    lines = [f"| {head} | {' | '.join(NAMES[column] for column in columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for name, figures in rows.items():
        lines.append(f"| {name} | {' | '.join(shown(figures.get(column)) for column in columns)} |")
    return lines


def shown(figure: Mapping[str, float] | float | None) -> str:
    """A figure with its interval; a dash where there is none, or one that says nothing."""
    if figure is None or (not isinstance(figure, float) and figure.get("is_constant")):
        return NONE
    if isinstance(figure, float):
        return f"{figure:.3f}"
    return f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"


def _attacks(by_judge: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    attacks = list(dict.fromkeys(attack for figures in by_judge.values() for attack in figures))
    lines = [f"| attack | {' | '.join(by_judge)} |", f"|{'---|' * (len(by_judge) + 1)}"]
    for attack in attacks:
        cells = [_attacked(figures[attack]) if attack in figures else "" for figures in by_judge.values()]
        lines.append(f"| {attack} | {' | '.join(cells)} |")
    return lines


def _attacked(figure: Mapping[str, float]) -> str:
    share = f"{shown(figure)} of {figure['n']}" if "value" in figure else "of 0"
    return f"{share}, {figure['lost']} without a score" if figure["lost"] else share


def _plot(path: Path, measured: Figures) -> None:
    drawn(measured, NAMES).savefig(path, format="png", dpi=110)
