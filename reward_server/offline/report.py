"""Sums up a results file: `summary.json`, `report.md`, and two plots.

Everything is recomputed from the results, so a resumed run reports like an uninterrupted one.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from reward_server.offline.results import Result
from reward_server.scoring.total import NEEDS_A_MODEL

HISTOGRAM = "reward_histogram.png"
DIMENSIONS = "dimensions.png"
ALL_EQUAL = (
    "Every conversation got the same reward, so this run tells nothing apart. A scenario pays for drawing out what its "
    "own persona knows; conversations held with somebody else do not contain that, however good they are. Check the "
    "roles as well: if the agent's messages have the role `user`, set --agent-role user."
)
UNDECIDED_TITLES = {
    "undecided": "Not decided, so they count for nothing",
    "left_out": "Dimensions left out of the reward, as too little of them was decided",
    "undecided_caps": "A cap could not be decided, so rewards may be too high",
}
"""What is counted of a rubric that came with the command, and how it is called."""
FIRST_ERRORS = 10
_QUANTILES = {"p10": 0.10, "p50": 0.50, "p90": 0.90}


def summarise(results: Iterable[Result], source: str, scoring_version: str) -> dict[str, Any]:
    """The figures of a run."""
    everything = list(results)
    scored = [result for result in everything if result["status"] == "success"]
    failed = [result for result in everything if result["status"] == "error"]
    summary: dict[str, Any] = {
        "source": source,
        "scoring_version": scoring_version,
        "conversations": len(everything),
        "scored": len(scored),
        "errors": dict(Counter(map(why, failed)).most_common()),
        "first_errors": [error_line(result) for result in failed[:FIRST_ERRORS]],
        "rewards": _figures([result["reward"] for result in scored]),
        "turns": _figures([result["turns"] for result in scored]),
        "flags": _named(scored, "flags"),
        "capped_by": _named(scored, "capped_by"),
        **{name: _named(scored, name) for name in UNDECIDED_TITLES},
        "dimensions": _by_dimension(scored),
        "scenarios": _by_scenario(scored),
    }
    if len(scored) > 1 and summary["rewards"]["std"] == 0:
        summary["warning"] = ALL_EQUAL
    pairs = _pairs(scored)
    if pairs:
        summary["pairs"] = pairs
    return summary


def _named(results: Iterable[Result], field: str) -> dict[str, int]:
    """What the results name in a field, and in how many conversations; the most frequent first."""
    return dict(Counter(name for result in results for name in result.get(field) or ()).most_common())


def error_line(result: Result) -> str:
    """The error of a row, on one line."""
    return f"row {result['row']}: {why(result)}: {result.get('message') or result['code']}"


def why(result: Result) -> str:
    """The code of an error with what caused it, where that is known (docs/judges.md lists the causes of judges)."""
    return f"{result['code']} ({result['cause']})" if result.get("cause") else str(result["code"])


def _figures(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ranked = sorted(values)
    found = {"mean": fmean(ranked), "std": pstdev(ranked), "min": ranked[0], "max": ranked[-1]}
    found |= {name: ranked[min(len(ranked) - 1, int(share * len(ranked)))] for name, share in _QUANTILES.items()}
    return {name: round(value, 4) for name, value in found.items()}


def _by_dimension(scored: Sequence[Result]) -> dict[str, dict[str, float]]:
    values: dict[str, list[float]] = defaultdict(list)
    for result in scored:
        for name, score in result["scores"].items():
            values[name].append(score)
    return {name: _figures(found) for name, found in sorted(values.items())}


def _by_scenario(scored: Sequence[Result]) -> dict[str, dict[str, float]]:
    values: dict[str, list[float]] = defaultdict(list)
    for result in scored:
        values[f"{result['collection_slug']}/{result['scenario_slug']}"].append(result["reward"])
    return {name: {"conversations": len(found), **_figures(found)} for name, found in sorted(values.items())}


def _pairs(scored: Sequence[Result]) -> dict[str, int]:
    """The number of times the answer that people chose got the higher reward, where rows hold such pairs."""
    rows: dict[int, dict[str, float]] = defaultdict(dict)
    for result in scored:
        if result.get("part") in ("chosen", "rejected"):
            rows[result["row"]][result["part"]] = result["reward"]
    whole = [row for row in rows.values() if len(row) == 2]
    if not whole:
        return {}
    higher = sum(row["chosen"] > row["rejected"] for row in whole)
    ties = sum(row["chosen"] == row["rejected"] for row in whole)
    return {"pairs": len(whole), "chosen_higher": higher, "ties": ties, "rejected_higher": len(whole) - higher - ties}


def write_report(folder: Path, summary: Mapping[str, Any], rewards: Sequence[float]) -> None:
    """Write `summary.json`, the plots and `report.md` into the folder."""
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if rewards:
        _plot_histogram(folder / HISTOGRAM, rewards)
        _plot_dimensions(folder / DIMENSIONS, summary["dimensions"])
    (folder / "report.md").write_text(_markdown(summary, plots=bool(rewards)), encoding="utf-8")


def _markdown(summary: Mapping[str, Any], plots: bool) -> str:
    lines = [
        f"# Evaluation of {summary['source']}",
        "",
        f"{summary['scored']} of {summary['conversations']} conversations were scored "
        f"under scoring version `{summary['scoring_version']}`.",
        "",
    ]
    if "warning" in summary:
        lines += [f"**{summary['warning']}**", ""]
    if plots:
        rows = {"reward": summary["rewards"], "agent turns": summary["turns"], **summary["dimensions"]}
        lines += [*_table("figure", rows), "", f"![Rewards]({HISTOGRAM})", "", f"![Dimensions]({DIMENSIONS})", ""]
        lines += ["## Scenarios", "", *_table("scenario", summary["scenarios"]), ""]
    counts = {
        "errors": "Not scored",
        **UNDECIDED_TITLES,
        "capped_by": "Caps that lowered the reward",
        "flags": "Gates that closed",
        "pairs": "Pairs",
    }
    for key, title in counts.items():
        if summary.get(key):
            lines += [f"## {title}", "", "| what | count |", "|---|---|"]
            lines += [f"| {name} | {count} |" for name, count in summary[key].items()]
            lines.append("")
        if key == "undecided" and summary.get(key):
            lines += [NEEDS_A_MODEL, ""]
        if key == "errors" and summary["first_errors"]:
            lines += ["The first of them:", "", *(f"- {error}" for error in summary["first_errors"]), ""]
    return "\n".join(lines)


def _table(head: str, rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    columns = list(dict.fromkeys(name for figures in rows.values() for name in figures))
    lines = [f"| {head} | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for name, figures in rows.items():
        cells = [f"{figures[column]:g}" if column in figures else "" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _plot_histogram(path: Path, rewards: Sequence[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(rewards, bins=[i / 20 for i in range(21)], color="#4a6fa5", edgecolor="white")
    axes.set(xlabel="reward", ylabel="conversations", xlim=(0, 1), title=f"{len(rewards)} rewards")
    figure.savefig(path, format="png")


def _plot_dimensions(path: Path, dimensions: Mapping[str, Mapping[str, float]]) -> None:
    from matplotlib.figure import Figure

    names = list(dimensions)[::-1]
    figure = Figure(figsize=(7, 1 + 0.4 * max(1, len(names))), layout="constrained")
    axes = figure.add_subplot()
    means = [dimensions[name]["mean"] for name in names]
    spread = [dimensions[name]["std"] for name in names]
    axes.barh(names, means, xerr=spread, color="#4a6fa5", ecolor="#999999", capsize=2)
    axes.set(xlabel="mean score (bar: standard deviation)", xlim=(0, 1))
    figure.savefig(path, format="png")
