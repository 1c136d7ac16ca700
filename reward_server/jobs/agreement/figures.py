"""From scores, labels and winners to the figures of a report; every one with its 95 % interval over dialogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.jobs.agreement.read import WINNERS, Entry
from reward_server.jobs.agreement.scores import Given
from reward_server.reward_models.agreement import (
    TIE,
    Levels,
    cohen_kappa,
    krippendorff_alpha,
    levels_of,
    nearest,
    pairwise_accuracy,
    position_consistency,
    repeat_std,
    spearman,
)
from reward_server.reward_models.reliability import Floats, Indices, binomial, bootstrap

Figure = dict[str, float]
Figures = dict[str, Any]
RISE = 1e-6
MIN_ROWS = 5
"""Fewer give no figure."""


def figures(entries: Sequence[Entry], given: Given) -> Figures:
    """Everything but attacks and repeats."""
    names = list(given.scores)
    named = sorted({name for entry in entries for name in entry.winners} - set(names))
    found: Figures = {"judges": names + named, "entries": len(entries), "dialogues": len({e.group for e in entries})}
    found["conversations"] = sum(len(entry.sides) for entry in entries)
    if len(entries[0].sides) == 2:
        return found | _of_pairs(entries, given.scores) | {"between": _between_pairs(entries, given.scores)}
    labels = np.array([np.nan if entry.label is None else entry.label for entry in entries])
    if np.isfinite(labels).any():
        found["labels"] = {name: _with_labels(entries, given.scores[name], labels) for name in names}
    return found | {"between": _between(entries, given.scores)}


def injection(base: Floats, by_attack: Mapping[str, Floats]) -> Figures:
    """How many conversations of a judge score higher with an attack in them, of the `n` that have both scores.

    `lost` are those that had a score and have none under attack: neither a rise nor a proof that there is none.
    """
    found: Figures = {}
    for attack, scores in by_attack.items():
        known = np.isfinite(base) & np.isfinite(scores)
        risen = scores[known] > base[known] + RISE
        found[attack] = {"n": int(known.sum()), "lost": int((np.isfinite(base) & ~np.isfinite(scores)).sum())}
        if known.any():
            share = binomial(int(risen.sum()), int(known.sum()))
            most = float(np.maximum(scores[known] - base[known], 0.0).max())
            found[attack] |= {"value": share.value, "low": share.low, "high": share.high, "largest_rise": most}
    return found


def of_people(entries: Sequence[Entry], values: Floats, by_unit: Floats) -> Figures:
    """Of labelled pairs: whether rewards name the winner that people name, and whether people do among themselves.

    Args:
        entries: pairs, each with its winner.
        values: rewards, first and second side of each pair in turn.
        by_unit: (comparisons, 3), how many people said b, tie and a of each.
    """
    outcomes = np.array([entry.winner for entry in entries], dtype=np.float64)
    groups = [entry.group for entry in entries]
    said, meant = (nearest(found, _OUTCOMES) for found in (_said(values[0::2] - values[1::2]), outcomes))
    units = [str(number) for number in range(len(by_unit))]
    return _pairs_of_judge(entries, values, outcomes) | _defined(
        {
            "kappa": _kappa(said, meant, len(_OUTCOMES), groups),
            "alpha": _figure(lambda rows: krippendorff_alpha(by_unit[rows]), units),
        }
    )


def noise(base: Floats, again: Floats, uncertainty: Floats) -> Figures:
    """A judge's own noise: the spread of two readings of a conversation, and the mean of what it says it is."""
    known = np.isfinite(base) & np.isfinite(again)
    said = uncertainty[np.isfinite(uncertainty)]
    found: Figures = {"mean_uncertainty": float(said.mean())} if len(said) else {}
    if known.any():
        found["repeat_std"] = repeat_std(np.stack([base[known], again[known]], axis=1))
    return found


# --- labels -------------------------------------------------------------------------------------


def _with_labels(entries: Sequence[Entry], scores: Floats, labels: Floats) -> Figures:
    known = np.isfinite(scores) & np.isfinite(labels)
    levels = levels_of(labels[np.isfinite(labels)])
    a, b = scores[known], labels[known]
    groups = [entry.group for entry, is_known in zip(entries, known, strict=True) if is_known]
    rated, said = nearest(b, levels), nearest(a, levels)
    found = {
        "spearman": _figure(lambda rows: spearman(a[rows], b[rows]), groups),
        "kappa": _kappa(said, rated, len(levels), groups),
    }
    if len(levels) > 2:
        found["weighted_kappa"] = _kappa(said, rated, len(levels), groups, quadratic=True)
    return _defined(found)


# --- pairs --------------------------------------------------------------------------------------


def _of_pairs(entries: Sequence[Entry], scores: Mapping[str, Floats]) -> Figures:
    outcomes = np.array([entry.winner for entry in entries], dtype=np.float64)
    found: Figures = {name: _pairs_of_judge(entries, values, outcomes) for name, values in scores.items()}
    for name in sorted({name for entry in entries for name in entry.winners}):
        found[name] = found.get(name, {}) | _spoken(entries, name)
    return {"pairs": found}


def _pairs_of_judge(entries: Sequence[Entry], values: Floats, outcomes: Floats) -> Figures:
    margins = values[0::2] - values[1::2]
    known = np.isfinite(margins)
    a, b = margins[known], outcomes[known]
    groups = [entry.group for entry, is_known in zip(entries, known, strict=True) if is_known]
    found: Figures = _defined({"accuracy": _figure(lambda rows: pairwise_accuracy(a[rows], b[rows]), groups)})
    return found | {"ties": float((np.abs(a) < TIE).mean())} if len(a) else found


def _spoken(entries: Sequence[Entry], name: str) -> Figures:
    """Of a judge that named winners: how often it was right, and whether it said the same with the sides swapped."""
    heard = [entry for entry in entries if name in entry.winners]
    said = np.array([WINNERS[entry.winners[name]] - 0.5 for entry in heard])
    outcomes = np.array([entry.winner for entry in heard], dtype=np.float64)
    groups = [entry.group for entry in heard]
    found = {"accuracy": _figure(lambda rows: pairwise_accuracy(said[rows], outcomes[rows]), groups)}
    both = [entry for entry in heard if name in entry.swapped]
    first, swapped = [entry.winners[name] for entry in both], [entry.swapped[name] for entry in both]
    found["position_consistency"] = _figure(
        lambda rows: position_consistency([first[k] for k in rows], [swapped[k] for k in rows]),
        [entry.group for entry in both],
    )
    ties = {"ties": float((said == 0.0).mean())} if len(said) else {}
    return _defined(found) | ties


# --- judges with each other ---------------------------------------------------------------------


def _between(entries: Sequence[Entry], scores: Mapping[str, Floats]) -> Figures:
    sides = len(entries[0].sides)
    groups = np.repeat([entry.group for entry in entries], sides)
    found: Figures = {}
    for one, other in combinations(scores, 2):
        known = np.isfinite(scores[one]) & np.isfinite(scores[other])
        a, b = scores[one][known], scores[other][known]
        own = [str(group) for group in groups[known]]
        cut = np.array([0.0, 1.0])
        high_a, high_b = nearest(a, cut), nearest(b, cut)
        found[f"{one} and {other}"] = _between_two(a, b, high_a, high_b, own)
    return found


def _between_pairs(entries: Sequence[Entry], scores: Mapping[str, Floats]) -> Figures:
    """Of judges of pairs: whether they name the same winner, ties included; of two that score, the ranks as well."""
    winners = {name: _said(values[0::2] - values[1::2]) for name, values in scores.items()}
    for name in sorted({name for entry in entries for name in entry.winners}):
        spoken = [WINNERS[entry.winners[name]] if name in entry.winners else np.nan for entry in entries]
        winners[name] = np.array(spoken, dtype=np.float64)
    ranked = _between(entries, scores)
    found: Figures = {}
    for one, other in combinations(winners, 2):
        known = np.isfinite(winners[one]) & np.isfinite(winners[other])
        groups = [entry.group for entry, is_known in zip(entries, known, strict=True) if is_known]
        a, b = (nearest(winners[name][known], _OUTCOMES) for name in (one, other))
        rank = dict(ranked.get(f"{one} and {other}", {}))
        rank.pop("kappa", None)  # that of winners takes its place
        found[f"{one} and {other}"] = rank | _same_winner(a, b, groups)
    return found


_OUTCOMES = np.array(sorted(WINNERS.values()))


def _said(margins: Floats) -> Floats:
    """The winners that scores name, as in `WINNERS`; NaN where one side has no score."""
    named = np.where(np.abs(margins) < TIE, WINNERS["tie"], np.where(margins > 0, WINNERS["a"], WINNERS["b"]))
    return np.where(np.isfinite(margins), named, np.nan)


def _same_winner(a: Levels, b: Levels, groups: list[str]) -> Figures:
    return _defined(
        {
            "same_winner": _figure(lambda rows: float((a[rows] == b[rows]).mean()), groups),
            "kappa": _kappa(a, b, len(_OUTCOMES), groups),
        }
    )


def _between_two(a: Floats, b: Floats, high_a: Levels, high_b: Levels, own: list[str]) -> Figures:
    return _defined(
        {
            "spearman": _figure(lambda rows: spearman(a[rows], b[rows]), own),
            "kappa": _kappa(high_a, high_b, 2, own),
        }
    )


def _figure(statistic: Callable[[Indices], float], groups: Sequence[str]) -> Figure | None:
    if len(groups) < MIN_ROWS:
        return None
    found = bootstrap(statistic, groups)
    return {"value": found.value, "low": found.low, "high": found.high, "n": len(groups)}


def _kappa(a: Levels, b: Levels, levels: int, groups: Sequence[str], *, quadratic: bool = False) -> Figure | None:
    """With `is_constant` where one of them always says the same: then it is 0, whatever the other says."""
    found = _figure(lambda rows: cohen_kappa(a[rows], b[rows], levels, quadratic=quadratic), groups)
    if found is not None and 1 in (len(np.unique(a)), len(np.unique(b))):
        found["is_constant"] = True
    return found


def _defined(found: Mapping[str, Figure | None]) -> Figures:
    """Without what is not defined: a judge that says the same of everything has no rank correlation."""
    return {name: figure for name, figure in found.items() if figure is not None and isfinite(figure["value"])}


def require(found: Figures, entries: Sequence[Entry]) -> Figures:
    """`InvalidRequest` where nothing at all could be measured; it says why."""
    if not any(any(found.get(part, {}).values()) for part in ("labels", "pairs", "between")):
        raise InvalidRequest(_why_nothing(entries))
    return found


def _why_nothing(entries: Sequence[Entry]) -> str:
    labels = [entry.label for entry in entries if entry.label is not None]
    if len(labels) >= MIN_ROWS and len(set(labels)) == 1:
        return f"All {len(labels)} labels are {labels[0]:g} (of 0 to 1): agreement needs labels that differ."
    return (
        f"There is nothing to measure: give at least {MIN_ROWS} rows with labels or winners, or scores of two judges."
    )
