"""Figures where neither the dialogue of a row nor the system that wrote it was learned from.

Heads learn to know authors: where labels hang on who wrote a reply, figures on other dialogues of the same authors are
good, and those on another author's replies are not. Where rows name their `system`, the systems are dealt into a few
parts, and heads are fitted anew without one part at a time, the way that was kept and with its penalty. They are asked
about the held-out rows of the systems that were left out. The model itself learns from all systems.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reward_server.fitting.reward_model.metrics import PAIR_STATISTICS, VALUE_STATISTICS, Resamples, as_json
from reward_server.reward_models.dataset import OVERALL, Dataset, DatasetSplit, Labelled, PreferredPair
from reward_server.reward_models.fitness import PAIRS_UNSEEN, UNSEEN
from reward_server.reward_models.heads import Exact, Heads, Matrix
from reward_server.reward_models.matrices import ExampleMatrices

MIN_ROWS = 10
"""Held-out rows or pairs that figures are worth having of, and rows to learn from without a part."""
_LABELS, _PAIRS = 4, 2
"""Parts that systems are dealt into. Of pairs both sides have to be of the part that is left out, which in more parts
few are."""


@dataclass(frozen=True)
class UnseenScores:
    """The scores of heads for rows whose systems they do not know."""

    rows: Sequence[Labelled]
    values: Exact
    pairs: Sequence[PreferredPair]
    chances: Exact


@dataclass(frozen=True)
class UnseenFigures:
    """The figures by name, for the card; empty where rows name too few systems."""

    metrics: dict[str, Any] = field(default_factory=dict)
    systems: int = 0
    parts: int = 0


def systems_of(row: Labelled | PreferredPair) -> frozenset[str]:
    """The systems that wrote it, as far as they are named."""
    return frozenset(name for name in ((row.system,) if isinstance(row, Labelled) else row.systems) if name)


def named_systems(*parts: Dataset) -> tuple[str, ...]:
    """The systems that rows of these parts name, in order."""
    return tuple(sorted({name for part in parts for row in part.rows() for name in systems_of(row)}))


def measured_without(
    parts: DatasetSplit, seed: int, asked: Callable[[DatasetSplit, int], UnseenScores]
) -> UnseenFigures:
    """Figures over held-out rows of left-out systems; `asked` fits on a split and asks about its last part."""
    names = named_systems(parts.train, parts.validation)
    if len(names) < 2:
        return UnseenFigures()
    answers = [
        asked(split, number)
        for number, left_out in enumerate(_dealt(names, _LABELS if parts.train.labelled else _PAIRS))
        if (split := _without(parts, left_out)) is not None
    ]
    metrics = _figures(answers, seed)
    return UnseenFigures(metrics, len(names), len(answers)) if metrics else UnseenFigures()


def asked_about(heads: Heads, part: Dataset, features: Mapping[str, Matrix]) -> UnseenScores:
    """The scores of heads for the rows of a part that have a label for the whole, and for its pairs."""
    rows = tuple(row for row in part.labelled if OVERALL in row.scores)
    examples = ExampleMatrices.of(replace(part, labelled=rows), features, (OVERALL,), heads.width)
    values = heads.values(examples.features)[:, 0] if rows else np.zeros(0)
    chances = heads.chances(examples.chosen, examples.rejected) if part.preferred else np.zeros(0)
    return UnseenScores(rows, values, part.preferred, chances)


def figures_of_unseen(
    dataset: Dataset, known: Sequence[str], heads: Heads, features: Mapping[str, Matrix]
) -> dict[str, Any]:
    """Figures over the rows that name their system, and none of these; empty where all do, or too few."""
    rest = _only(dataset, lambda row: _is_named(row) and not systems_of(row) & frozenset(known))
    if len(list(rest.rows())) == len(list(dataset.rows())):
        return {}
    return _figures([asked_about(heads, rest, features)], seed=0)


def _dealt(names: Sequence[str], parts: int) -> list[frozenset[str]]:
    """As many systems in each part as in any other, by their hash: the same ones whatever the order of rows."""
    order = sorted(names, key=lambda name: hashlib.sha256(f"system/{name}".encode()).digest())
    return [frozenset(order[start::parts]) for start in range(min(parts, len(order)))]


def _without(parts: DatasetSplit, left_out: frozenset[str]) -> DatasetSplit | None:
    """The same split, with those systems in the last part alone; None where a part is too small."""
    first, middle = (
        _only(part, lambda row: not systems_of(row) & left_out) for part in (parts.train, parts.validation)
    )
    last = _only(parts.held_out, lambda row: _is_named(row) and systems_of(row) <= left_out)
    enough = len(list(first.rows())) >= MIN_ROWS and any(True for _ in middle.rows()) and any(True for _ in last.rows())
    learns = bool(first.preferred) or len({row.scores[OVERALL] for row in first.labelled if OVERALL in row.scores}) > 1
    return DatasetSplit(first, middle, last, 0) if enough and learns else None


def _only(part: Dataset, wanted: Callable[[Labelled | PreferredPair], bool]) -> Dataset:
    return replace(part, labelled=tuple(filter(wanted, part.labelled)), preferred=tuple(filter(wanted, part.preferred)))


def _is_named(row: Labelled | PreferredPair) -> bool:
    return bool(row.system) if isinstance(row, Labelled) else all(row.systems)


def _figures(answers: Sequence[UnseenScores], seed: int) -> dict[str, Any]:
    rows = [row for answer in answers for row in answer.rows]
    pairs = [pair for answer in answers for pair in answer.pairs]
    metrics: dict[str, Any] = {}
    if len(rows) >= MIN_ROWS:
        values = np.concatenate([answer.values for answer in answers])
        labels = np.array([row.scores[OVERALL] for row in rows])
        figures = Resamples.of([row.group for row in rows], seed).figures(VALUE_STATISTICS, values, labels)
        metrics[UNSEEN] = {"n": len(rows), **as_json(figures)}
    if len(pairs) >= MIN_ROWS:
        margins = np.concatenate([answer.chances for answer in answers]) - 0.5
        targets = np.array([0.5 if pair.tie else 1.0 for pair in pairs])
        figures = Resamples.of([pair.group for pair in pairs], seed).figures(PAIR_STATISTICS, margins, targets)
        metrics[PAIRS_UNSEEN] = {"n": len(pairs), **as_json(figures)}
    return metrics
