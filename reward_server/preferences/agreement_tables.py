"""The figures of measured judges as tables, for a report and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
AGREEMENTS = (
    ("labels", "With human labels", "judge"),
    ("pairs", "With human winners", "judge"),
    ("between", "With each other", "judges"),
)
STEADINESS = {"repeat_std": "standard deviation of two readings", "mean_uncertainty": "its own uncertainty, mean"}
UNDEFINED = f"{NONE}: one of the two gives every row the same value, or there are too few rows."
ATTACKED = """\
Each text is added to every turn of the agent. Share of conversations that then score
higher, of those that have a score with and without it; lost scores are counted apart."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table, what is said before it, and after it."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    before: str = ""
    after: str = ""


def tables(measured: Mapping[str, Any]) -> list[FigureTable]:
    """Those that something was measured for."""
    return [*_agreements(measured), *_others(measured)]


def shown(figure: Mapping[str, float] | float | None) -> str:
    """A figure with its interval; a dash where there is none, or one that says nothing."""
    if figure is None or (not isinstance(figure, float) and figure.get("is_constant")):
        return NONE
    if isinstance(figure, float):
        return f"{figure:.3f}"
    return f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"


def _agreements(measured: Mapping[str, Any]) -> Iterator[FigureTable]:
    for key, title, head in AGREEMENTS:
        found: Mapping[str, Mapping[str, Any]] = measured.get(key, {})
        if any(found.values()):
            columns = list(dict.fromkeys(name for figures in found.values() for name in figures))
            rows = [(name, *(shown(figures.get(each)) for each in columns)) for name, figures in found.items()]
            after = UNDEFINED if any(NONE in row for row in rows) else ""
            yield FigureTable(title, (head, *(NAMES[each] for each in columns)), rows, after=after)


def _others(measured: Mapping[str, Any]) -> Iterator[FigureTable]:
    if by_judge := measured.get("injection"):
        yield FigureTable("Attacks", ("attack", *by_judge), _attacks(by_judge), before=ATTACKED)
    if noise := measured.get("noise"):
        rows = [(name, *(_known(figures.get(each)) for each in STEADINESS)) for name, figures in noise.items()]
        yield FigureTable("Noise", ("judge", *STEADINESS.values()), rows)
    if failures := measured.get("failures"):
        counts: list[tuple[str, ...]] = [(name, str(count)) for name, count in failures.items()]
        yield FigureTable("Not scored", ("judge and reason", "conversations"), counts)


def _known(figure: float | None) -> str:
    return "not known" if figure is None else f"{figure:.4f}"


def _attacks(by_judge: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[tuple[str, ...]]:
    attacks = dict.fromkeys(attack for figures in by_judge.values() for attack in figures)
    return [
        (attack, *(_attacked(figures[attack]) if attack in figures else "" for figures in by_judge.values()))
        for attack in attacks
    ]


def _attacked(figure: Mapping[str, float]) -> str:
    share = f"{shown(figure)} of {figure['n']}" if "value" in figure else "of 0"
    return f"{share}, {figure['lost']} without a score" if figure["lost"] else share
