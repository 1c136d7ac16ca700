"""Fits a slope and a bias for each kind of question, and keeps a map only if it helps on answers that it has not seen.

Errors after are cross-fitted by group (a scenario, a conversation), as for rewards (`calibration_fit`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reward_server.decisions.maps import LEAST, NULL, KindMap
from reward_server.decisions.questions import YES, AnswerProbabilities
from reward_server.fitting.calibration.calibration_fit import folds
from reward_server.fitting.decisions.ask import LabelledAnswer
from reward_server.reward_models.reliability import FigureInterval, Floats, calibration_error

FEWEST, OF_EITHER = 40, 10
"""Answers of a kind, and of them those that say something and those that say nothing."""
FIRM = 0.02
"""How firmly slope 1 and bias 0 are held to, beside the mean log loss: with few answers little moves."""


@dataclass(frozen=True, eq=False, slots=True)
class Reliability:
    """How sure a model was, and whether it was right."""

    predicted: Floats
    """(n,): of a yes-or-no question the probability of yes, of a choice that of its likeliest answer."""
    observed: Floats
    """(n,)."""
    right: float
    """The share of answers whose likeliest one is right."""
    loss: float
    """Mean negative log probability of what is right, in nats."""
    error: FigureInterval


@dataclass(frozen=True, slots=True)
class KindFit:
    """A kind of question before and after."""

    kind: str
    map: KindMap | None
    """None where it is not kept, for the reason in `why`."""
    why: str
    n: int
    before: Reliability | None = None
    after: Reliability | None = None
    """Cross-fitted."""


def fit_kinds(answers: Sequence[LabelledAnswer]) -> list[KindFit]:
    """A fit of each kind, in alphabetical order."""
    kinds = sorted({answer.kind for answer in answers})
    return [_fit(kind, [answer for answer in answers if answer.kind == kind]) for kind in kinds]


def _fit(kind: str, answers: Sequence[LabelledAnswer]) -> KindFit:
    n, nothing = len(answers), sum(1 for answer in answers if answer.right <= NULL)
    groups = [answer.group for answer in answers]
    if n < FEWEST or min(nothing, n - nothing) < OF_EITHER:
        return KindFit(kind, None, f"needs {FEWEST} answers, {OF_EITHER} of either side; has {n}, {nothing} of no", n)
    if len(set(groups)) == 1:
        return KindFit(kind, None, "all are of one group: there must be several", n)
    before = reliability(answers, [answer.probabilities for answer in answers])
    mapped: list[AnswerProbabilities | None] = [None] * n
    for held_out in folds(groups):
        part = fitted([answers[i] for i in np.flatnonzero(~held_out).tolist()])
        for i in np.flatnonzero(held_out).tolist():
            mapped[i] = part.apply(AnswerProbabilities(answers[i].probabilities))
    after = reliability(answers, [outcome.probabilities for outcome in mapped if outcome is not None])
    if after.loss >= before.loss:
        return KindFit(kind, None, "not kept: no better on answers that it has not seen", n, before, after)
    return KindFit(kind, fitted(answers), "kept", n, before, after)


def fitted(answers: Sequence[LabelledAnswer]) -> KindMap:
    """The map with the least mean log loss, held to the identity by `FIRM`."""
    from scipy.optimize import minimize

    widest = max(len(answer.probabilities) for answer in answers)
    logs, nothing, right = (np.zeros((len(answers), widest)) for _ in range(3))
    logs[:] = -np.inf
    for row, answer in enumerate(answers):
        for column, (label, p) in enumerate(answer.probabilities.items()):
            logs[row, column] = math.log(max(p, LEAST))
            nothing[row, column] = label in NULL
            right[row, column] = label in answer.right

    def cost(given: Floats) -> float:
        scores = np.exp(given[0]) * logs + given[1] * nothing
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely = (weights * right).sum(axis=1) / weights.sum(axis=1)
        loss = -np.log(np.maximum(likely, LEAST)).mean()
        return float(loss + FIRM * (given[0] ** 2 + (given[1] / 4) ** 2))

    best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7})
    return KindMap(slope=round(math.exp(float(best.x[0])), 6), bias=round(float(best.x[1]), 6), n=len(answers))


def _loss(answer: LabelledAnswer, probabilities: Mapping[str, float]) -> float:
    return -math.log(max(sum(probabilities.get(label, 0.0) for label in answer.right), LEAST))


def reliability(answers: Sequence[LabelledAnswer], given: Sequence[Mapping[str, float]]) -> Reliability:
    """Of these probabilities on these answers."""
    predicted, observed, right, losses = [], [], [], []
    for answer, probabilities in zip(answers, given, strict=True):
        best = AnswerProbabilities(probabilities).best
        watched = YES if YES in probabilities else best
        predicted.append(probabilities[watched])
        observed.append(float(watched in answer.right))
        right.append(best in answer.right)
        losses.append(_loss(answer, probabilities))
    p, y = np.array(predicted), np.array(observed)
    error = calibration_error(p, y, [answer.group for answer in answers])
    return Reliability(p, y, float(np.mean(right)), float(np.mean(losses)), error)
