"""A judge of two levels: seven plain comparisons, and the head on all features as an eighth.

The large head has thousands of weights and a few hundred pairs. How far it is to be believed is learned from what it
said of instructions that it had not seen (stacking: Wolpert 1992), never from its training pairs. The small head starts
from equal weights (Dawes 1979): their sum is a column of its own, and each comparison may leave it as far as the pairs
say.

Everything is linear in differences without an intercept, so the order of the two outputs cannot matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.figures import Floats, Indices, folds_of
from benchmarks.quality.heads import preference_head, preference_prior
from reward_server.fitting.reward_model.emphasis import EmphasisRows, factors
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.uncertainty import fit_preferences

INNER = 5
"""Folds of the training pairs in which the large head is asked about what it has not seen."""


@dataclass(frozen=True)
class Compared:
    """Pairs as both levels see them: the preferred side less the other."""

    differences: NDArray[np.float32]
    """Of features, (n, width)."""
    plain: Floats
    """Of plain comparisons, (n, 7)."""
    groups: tuple[str, ...]
    """The instruction of each pair."""

    def part(self, rows: Indices) -> Compared:
        """Some of the pairs."""
        return Compared(self.differences[rows], self.plain[rows], tuple(self.groups[row] for row in rows))

    @property
    def swapped(self) -> Compared:
        """The same pairs with the outputs in the other order."""
        return Compared(-self.differences, -self.plain, self.groups)


def together(parts: Sequence[Compared]) -> Compared:
    """The pairs of several sets, one after the other."""
    return Compared(
        np.concatenate([part.differences for part in parts]),
        np.concatenate([part.plain for part in parts]),
        tuple(group for part in parts for group in part.groups),
    )


@dataclass(frozen=True)
class Margins:
    """Log-odds of the preferred side, (n,) each."""

    large: Floats
    small: Floats
    both: Floats


@dataclass(frozen=True)
class TwoLevels:
    """The fitted heads."""

    scale: Floats
    """Of the plain comparisons."""
    large: LinearPosterior
    small: LinearPosterior
    both: LinearPosterior

    def margins(self, pairs: Compared) -> Margins:
        """What each head says."""
        large, plain = self.large.predict(pairs.differences).mean, with_sum(pairs.plain / self.scale)
        return Margins(large, self.small.predict(plain).mean, self.both.predict(np.column_stack([plain, large])).mean)


def fit(featuriser: ConversationFeaturiser, pairs: Compared) -> TwoLevels:
    """Both levels, and the small one without the large one; all that is chosen is chosen on these pairs."""
    prior = preference_prior(featuriser, pairs.differences)
    unseen = np.zeros(len(pairs.groups))
    for train, held_out in folds_of(pairs.groups, INNER):
        head = preference_head(featuriser, pairs.differences[train], prior)
        unseen[held_out] = head.predict(pairs.differences[held_out]).mean
    scale = spread(pairs.plain)
    plain = with_sum(pairs.plain / scale)
    return TwoLevels(
        scale=scale,
        large=preference_head(featuriser, pairs.differences, prior),
        small=small_head(plain, np.repeat([0, 1], [plain.shape[1] - 1, 1])),
        both=small_head(np.column_stack([plain, unseen]), np.repeat([0, 1, 2], [plain.shape[1] - 1, 1, 1])),
    )


def spread(rows: Floats) -> Floats:
    """Root mean square of each column, around 0: equal sides stay a tie. 1 where nothing moved."""
    size = np.sqrt((rows**2).mean(axis=0))
    return np.asarray(np.where(size > 0.0, size, 1.0))


def with_sum(plain: Floats) -> Floats:
    """Standardised comparisons (n, k), and their sum as one more column: equal weights."""
    return np.column_stack([plain, plain.sum(axis=1)])


def small_head(rows: Floats, kinds: NDArray[np.intp]) -> LinearPosterior:
    """A Bradley-Terry head that starts with each kind of columns as free as any other."""
    emphasis = 1.0 / np.sqrt(np.bincount(kinds))[kinds]
    standard = rows / spread(rows) * emphasis
    return fit_preferences(
        rows, emphasis=emphasis * factors([EmphasisRows(standard, np.ones(len(rows)))], kinds)[kinds]
    )
