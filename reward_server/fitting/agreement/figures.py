"""From scores, labels and winners to the figures of a report; every one with its 95 % interval over dialogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.read import LabelledEntry
from reward_server.fitting.agreement.scores import JudgeScores
from reward_server.preferences.figures import (
    MIN_ROWS,
    OUTCOMES,
    WINNERS,
    Figures,
    defined,
    figure_of,
    kappa_of,
    pairs_of_judge,
    winners_named,
)
from reward_server.reward_models.agreement import (
    Levels,
    levels_of,
    nearest,
    pairwise_accuracy,
    position_consistency,
    repeat_std,
    spearman,
)
from reward_server.reward_models.reliability import Floats, binomial

RISE = 1e-6


def figures(entries: Sequence[LabelledEntry], given: JudgeScores) -> Figures:
    """Everything but attacks and repeats."""
    names = list(given.scores)
    named = sorted({name for entry in entries for name in entry.winners} - set(names))
    measured: Figures = {
        "judges": names + named,
        "entries": len(entries),
        "dialogues": len({entry.group for entry in entries}),
    }
    measured["conversations"] = sum(len(entry.sides) for entry in entries)
    if len(entries[0].sides) == 2:
        return measured | _of_pairs(entries, given.scores) | {"between": _between_pairs(entries, given.scores)}
    labels = np.array([np.nan if entry.label is None else entry.label for entry in entries])
    if np.isfinite(labels).any():
        measured["labels"] = {name: _with_labels(entries, given.scores[name], labels) for name in names}
    return measured | {"between": _between(entries, given.scores)}


def injection(base: Floats, by_attack: Mapping[str, Floats]) -> Figures:
    """The number of conversations that score higher by a judge with an attack in them, of the `n` with both scores.

    `lost` are those that had a score and have none under attack: neither a rise nor a proof that there is none.
    """
    rises: Figures = {}
    for attack, scores in by_attack.items():
        known = np.isfinite(base) & np.isfinite(scores)
        risen = scores[known] > base[known] + RISE
        rises[attack] = {"n": int(known.sum()), "lost": int((np.isfinite(base) & ~np.isfinite(scores)).sum())}
        if known.any():
            share = binomial(int(risen.sum()), int(known.sum()))
            most = float(np.maximum(scores[known] - base[known], 0.0).max())
            rises[attack] |= {"value": share.value, "low": share.low, "high": share.high, "largest_rise": most}
    return rises


def noise(base: Floats, again: Floats, uncertainty: Floats) -> Figures:
    """A judge's own noise: the spread of two readings of a conversation, and the mean of what it says it is."""
    known = np.isfinite(base) & np.isfinite(again)
    stated = uncertainty[np.isfinite(uncertainty)]
    steadiness: Figures = {"mean_uncertainty": float(stated.mean())} if len(stated) else {}
    if known.any():
        steadiness["repeat_std"] = repeat_std(np.stack([base[known], again[known]], axis=1))
    return steadiness


# --- labels -------------------------------------------------------------------------------------


def _with_labels(entries: Sequence[LabelledEntry], scores: Floats, labels: Floats) -> Figures:
    known = np.isfinite(scores) & np.isfinite(labels)
    levels = levels_of(labels[np.isfinite(labels)])
    a, b = scores[known], labels[known]
    groups = [entry.group for entry, is_known in zip(entries, known, strict=True) if is_known]
    rated, judged = nearest(b, levels), nearest(a, levels)
    agreement = {
        "spearman": figure_of(lambda rows: spearman(a[rows], b[rows]), groups),
        "kappa": kappa_of(judged, rated, len(levels), groups),
    }
    if len(levels) > 2:
        agreement["weighted_kappa"] = kappa_of(judged, rated, len(levels), groups, quadratic=True)
    return defined(agreement)


# --- pairs --------------------------------------------------------------------------------------


def _of_pairs(entries: Sequence[LabelledEntry], scores: Mapping[str, Floats]) -> Figures:
    outcomes = np.array([entry.winner for entry in entries], dtype=np.float64)
    by_judge: Figures = {
        name: pairs_of_judge([entry.group for entry in entries], values, outcomes) for name, values in scores.items()
    }
    for name in sorted({name for entry in entries for name in entry.winners}):
        by_judge[name] = by_judge.get(name, {}) | _spoken(entries, name)
    return {"pairs": by_judge}


def _spoken(entries: Sequence[LabelledEntry], name: str) -> Figures:
    """Of a judge that named winners: how often it was right, and whether it said the same with the sides swapped."""
    heard = [entry for entry in entries if name in entry.winners]
    choices = np.array([WINNERS[entry.winners[name]] - 0.5 for entry in heard])
    outcomes = np.array([entry.winner for entry in heard], dtype=np.float64)
    groups = [entry.group for entry in heard]
    share = {"accuracy": figure_of(lambda rows: pairwise_accuracy(choices[rows], outcomes[rows]), groups)}
    both = [entry for entry in heard if name in entry.swapped]
    first, swapped = [entry.winners[name] for entry in both], [entry.swapped[name] for entry in both]
    share["position_consistency"] = figure_of(
        lambda rows: position_consistency([first[k] for k in rows], [swapped[k] for k in rows]),
        [entry.group for entry in both],
    )
    ties = {"ties": float((choices == 0.0).mean())} if len(choices) else {}
    return defined(share) | ties


# --- judges with each other ---------------------------------------------------------------------


def _between(entries: Sequence[LabelledEntry], scores: Mapping[str, Floats]) -> Figures:
    sides = len(entries[0].sides)
    groups = np.repeat([entry.group for entry in entries], sides)
    by_pair: Figures = {}
    for one, other in combinations(scores, 2):
        known = np.isfinite(scores[one]) & np.isfinite(scores[other])
        a, b = scores[one][known], scores[other][known]
        own = [str(group) for group in groups[known]]
        cut = np.array([0.0, 1.0])
        high_a, high_b = nearest(a, cut), nearest(b, cut)
        by_pair[f"{one} and {other}"] = _between_two(a, b, high_a, high_b, own)
    return by_pair


def _between_pairs(entries: Sequence[LabelledEntry], scores: Mapping[str, Floats]) -> Figures:
    """Of judges of pairs: whether they name the same winner, ties included; of two that score, the ranks as well."""
    winners = {name: winners_named(values[0::2] - values[1::2]) for name, values in scores.items()}
    for name in sorted({name for entry in entries for name in entry.winners}):
        spoken = [WINNERS[entry.winners[name]] if name in entry.winners else np.nan for entry in entries]
        winners[name] = np.array(spoken, dtype=np.float64)
    ranked = _between(entries, scores)
    by_pair: Figures = {}
    for one, other in combinations(winners, 2):
        known = np.isfinite(winners[one]) & np.isfinite(winners[other])
        groups = [entry.group for entry, is_known in zip(entries, known, strict=True) if is_known]
        a, b = (nearest(winners[name][known], OUTCOMES) for name in (one, other))
        rank = dict(ranked.get(f"{one} and {other}", {}))
        rank.pop("kappa", None)  # that of winners takes its place
        by_pair[f"{one} and {other}"] = rank | _same_winner(a, b, groups)
    return by_pair


def _same_winner(a: Levels, b: Levels, groups: list[str]) -> Figures:
    return defined(
        {
            "same_winner": figure_of(lambda rows: float((a[rows] == b[rows]).mean()), groups),
            "kappa": kappa_of(a, b, len(OUTCOMES), groups),
        }
    )


def _between_two(a: Floats, b: Floats, high_a: Levels, high_b: Levels, own: list[str]) -> Figures:
    return defined(
        {
            "spearman": figure_of(lambda rows: spearman(a[rows], b[rows]), own),
            "kappa": kappa_of(high_a, high_b, 2, own),
        }
    )


def require(measured: Figures, entries: Sequence[LabelledEntry]) -> Figures:
    """`InvalidRequest` where nothing at all could be measured; it says why."""
    if not any(any(measured.get(part, {}).values()) for part in ("labels", "pairs", "between")):
        raise InvalidRequest(_why_nothing(entries))
    return measured


def _why_nothing(entries: Sequence[LabelledEntry]) -> str:
    labels = [entry.label for entry in entries if entry.label is not None]
    if len(labels) >= MIN_ROWS and len(set(labels)) == 1:
        return f"All {len(labels)} labels are {labels[0]:g} (of 0 to 1): agreement needs labels that differ."
    return (
        f"There is nothing to measure: give at least {MIN_ROWS} rows with labels or winners, or scores of two judges."
    )
