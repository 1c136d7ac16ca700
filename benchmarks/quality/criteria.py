"""MRBench: heads for single rubric criteria, five-fold by conversation, against the verdicts of people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.quality import plots
from benchmarks.quality.data import DIMENSIONS, Reply
from benchmarks.quality.figures import NOT_KNOWN, Floats, auc_of, beaten, macro_f1, share
from benchmarks.quality.heads import cosines, criterion_scores, words
from benchmarks.report import Table
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import sigmoid
from reward_server.reward_models.reliability import FigureInterval, calibration_error, risk_coverage

FIRST = {
    "Mistake_Identification": 0.808,
    "Mistake_Location": 0.762,
    "Providing_Guidance": 0.661,
    "Actionability": 0.711,
    "Revealing_of_the_Answer": 0.880,
    "Coherence": 0.706,
}
"""AUC of a frozen encoder with a head on [p, r, p*r, |p-r|, lengths], on twice as many conversations."""


def tables(featuriser: ConversationFeaturiser, replies: Sequence[Reply]) -> list[str]:
    """The section of the report."""
    groups = [reply.group for reply in replies]
    features = featuriser.features([reply.conversation for reply in replies])
    labels = [np.array([float(reply.met[name]) for reply in replies]) for name in DIMENSIONS]
    scores = criterion_scores(featuriser, features, labels, groups)
    lengths = np.array([float(words(reply.conversation)) for reply in replies])
    cosine = cosines(featuriser, features)
    return [
        _ranking(groups, labels, scores, {"length": lengths, "cosine": cosine}),
        _certainty(groups, labels, scores),
    ]


def _ranking(
    groups: Sequence[str], labels: Sequence[Floats], scores: Sequence[Floats], simple: dict[str, Floats]
) -> str:
    table = Table(
        f"MRBench: AUC of yes against other, {len(groups)} replies in {len(set(groups))} conversations, five-fold",
        ["criterion", "said yes", *simple, "learned head [95 %]", "first number", "beaten", "macro-F1", "of majority"],
    )
    rows: list[tuple[str, FigureInterval]] = []
    baselines: dict[str, list[float]] = {name: [] for name in simple}
    for name, column, found in zip(DIMENSIONS, labels, scores, strict=True):
        area = auc_of(found, column, groups)
        others = {each: auc_of(values, column, groups).value for each, values in simple.items()}
        for each, value in others.items():
            baselines[each].append(max(value, 1.0 - value))
        f1 = macro_f1((found > 0).astype(np.float64), column)
        majority = macro_f1(np.full(len(column), float(column.mean() > 0.5)), column)
        cells = [f"{value:.3f}" for value in others.values()]
        table.add(
            name,
            f"{column.mean():.0%}",
            *cells,
            area,
            FIRST[name],
            beaten(area, FIRST[name]),
            f"{f1:.3f}",
            f"{majority:.3f}",
        )
        rows.append((name, area))
    plots.bars(
        "MRBench: AUC per criterion (chance 0.5)",
        "mrbench_auc",
        rows,
        {**baselines, "first number": [FIRST[name] for name in DIMENSIONS]},
    )
    note = (
        f"Ceiling: {NOT_KNOWN} (the public file has one verdict per reply). An AUC below 0.5 means that the simple "
        "score runs the other way; the diagram shows it mirrored. Macro-F1 is of yes against other."
    )
    return f"{table.text()}\n\n{note}"


def _certainty(groups: Sequence[str], labels: Sequence[Floats], scores: Sequence[Floats]) -> str:
    table = Table(
        "MRBench: are the heads as sure as they should be",
        ["criterion", "ECE [95 %]", "accuracy, all", "accuracy, surest half", "AURC", "at random"],
    )
    for name, column, found in zip(DIMENSIONS, labels, scores, strict=True):
        right = ((found > 0) == (column > 0.5)).astype(np.float64)
        curve = risk_coverage(-np.abs(found), 1.0 - right)
        surest = np.argsort(-np.abs(found), kind="stable")[: len(found) // 2]
        table.add(
            name,
            calibration_error(sigmoid(found), column, groups),
            share(right, groups),
            share(right[surest], [groups[row] for row in surest]),
            f"{curve.aurc:.3f}",
            f"{curve.random:.3f}",
        )
    return table.text()
