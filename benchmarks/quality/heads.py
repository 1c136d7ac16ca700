"""The product's features and heads, applied to a benchmark's data, and the simple baselines beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.quality.figures import Floats, folds_of
from reward_server.fitting.reward_model.emphasis import EmphasisRows, factors, learned_emphasis
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.uncertainty import fit_preferences
from reward_server.reward_models.wordings import COSINE_TO_LATEST

STRENGTHS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
"""Inverse penalties of criterion heads; one is chosen inside the training folds."""
INNER = 3
EVIDENCE_ROWS = 400
_LOG_LENGTH = 0
"""Where among `wordings.exchange_numbers` it stands."""


@dataclass(frozen=True)
class Prior:
    """What evidence says of a preference head before it is fitted."""

    emphasis: Floats
    """(width,): how freely each feature may be used."""
    precision: float


def preference_prior(featuriser: ConversationFeaturiser, differences: NDArray[np.float32]) -> Prior:
    """The prior of the largest evidence, one variance per kind of feature, from these rows alone."""
    moved = _moved(differences)
    rows, kinds = differences[:, moved], featuriser.kinds[moved]
    emphasis = featuriser.emphasis.astype(np.float64)
    standard = rows / np.sqrt((rows.astype(np.float64) ** 2).mean(axis=0)) * emphasis[moved]
    emphasis[moved] *= factors([EmphasisRows(standard, np.ones(len(rows)))], kinds)[kinds]
    # The evidence of a part of the training rows finds the penalty: with all of them it takes a minute a head.
    step = max(1, len(rows) // EVIDENCE_ROWS)
    return Prior(emphasis, 1.0 / fit_preferences(rows[::step], emphasis=emphasis[moved]).outside)


def preference_head(
    featuriser: ConversationFeaturiser, differences: NDArray[np.float32], prior: Prior | None = None
) -> LinearPosterior:
    """A Bradley-Terry head of the product's code: penalties by evidence, one per kind of feature; Laplace posterior."""
    prior = prior or preference_prior(featuriser, differences)
    moved = _moved(differences)
    slim = fit_preferences(differences[:, moved], prior_precision=prior.precision, emphasis=prior.emphasis[moved])
    return _widened(slim, moved)


def _moved(differences: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Columns that are equal on both sides of all pairs (what was said before) add nothing but arithmetic."""
    return np.asarray(np.abs(differences).max(axis=0) > 0)


def _widened(slim: LinearPosterior, moved: NDArray[np.bool_]) -> LinearPosterior:
    def spread(values: Floats, rest: float) -> Floats:
        wide = np.full((*values.shape[:-1], len(moved)), rest)
        wide[..., moved] = values
        return wide

    return LinearPosterior(
        centre=spread(slim.centre, 0.0),
        scale=spread(slim.scale, 1.0),
        weights=spread(slim.weights, 0.0),
        directions=spread(slim.directions, 0.0),
        variances=slim.variances,
        outside=slim.outside,
    )


def criterion_scores(
    featuriser: ConversationFeaturiser, features: NDArray[np.float32], labels: Sequence[Floats], groups: Sequence[str]
) -> list[Floats]:
    """Per label column (n,) the log-odds of yes of each row, from a head that did not see its dialogue."""
    scores = [np.zeros(len(groups)) for _ in labels]
    for train, held_out in folds_of(groups):
        names = [groups[row] for row in train]
        for column, found in zip(labels, scores, strict=True):
            emphasis = learned_emphasis(
                _labelled(features[train], column[train]), featuriser.emphasis, featuriser.kinds
            )
            rows, others = _rotated(features[train], features[held_out], emphasis)
            head = _logistic(rows, column[train], _strength(rows, column[train], names))
            found[held_out] = head.decision_function(others)
    return scores


def _labelled(features: NDArray[np.float32], labels: Floats) -> ExampleMatrices:
    nobody, nothing = np.zeros((0, features.shape[1]), np.float32), np.zeros(0, np.float32)
    return ExampleMatrices(features, labels.astype(np.float32)[:, None], nobody, nobody, nothing, nothing)


def _rotated(
    train: NDArray[np.float32], others: NDArray[np.float32], emphasis: NDArray[np.float32]
) -> tuple[Floats, Floats]:
    """Standardised and stretched features in the basis of the training rows: same distances, fewer columns."""
    centre, spread = train.mean(axis=0), train.std(axis=0)
    scale = np.where(spread > 1e-6, spread, np.inf) / emphasis
    rows = ((train - centre) / scale).astype(np.float64)
    strengths, basis = np.linalg.eigh(rows @ rows.T)
    kept = strengths > 1e-8 * strengths[-1]
    directions = (rows.T @ basis[:, kept]) / np.sqrt(strengths[kept])
    return rows @ directions, ((others - centre) / scale).astype(np.float64) @ directions


def _strength(rows: Floats, labels: Floats, groups: Sequence[str]) -> float:
    """The penalty with the best likelihood of dialogues left out of the training folds."""
    losses = dict.fromkeys(STRENGTHS, 0.0)
    for train, held_out in folds_of(groups, INNER):
        for strength in STRENGTHS:
            margins = _logistic(rows[train], labels[train], strength).decision_function(rows[held_out])
            losses[strength] += float(np.logaddexp(0.0, -margins * (2.0 * labels[held_out] - 1.0)).sum())
    return min(losses, key=lambda strength: losses[strength])


def _logistic(rows: Floats, labels: Floats, strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=200).fit(rows, labels)


def words(conversation: Conversation) -> int:
    """Length of the last message."""
    return len(conversation.turns[-1].text.split())


def cosines(featuriser: ConversationFeaturiser, features: NDArray[np.float32]) -> Floats:
    """(n,): of the reply with the message it answers, out of features (n, width) or their differences."""
    return features[:, featuriser.blocks["reply_numbers"]][:, COSINE_TO_LATEST].astype(np.float64)


def log_lengths(featuriser: ConversationFeaturiser, features: NDArray[np.float32]) -> Floats:
    """(n,): logarithms of the words read of the reply, out of features (n, width) or their differences."""
    return features[:, featuriser.blocks["reply_numbers"]][:, _LOG_LENGTH].astype(np.float64)
