"""The baseline of words: tf-idf of what was said, and a line through it.

Hashed, so that no word of a training text can be read from the file that keeps it. scikit-learn is imported where it
is called: it takes a second, and a server that starts needs none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load, save

from reward_server.reward_models.heads import Exact

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FILE = "words.safetensors"
BUCKETS = 1 << 14
PENALTY = 3.0


@dataclass(frozen=True)
class WordLine:
    """`intercept + weights @ tfidf(text)`."""

    rarity: Exact
    """Inverse document frequency, shape (BUCKETS,)."""
    weights: Exact
    """Shape (BUCKETS,)."""
    intercept: float = 0.0

    @classmethod
    def of_labels(cls, texts: Sequence[str], labels: Exact) -> WordLine:
        """Ridge on labels (n,)."""
        from sklearn.linear_model import Ridge

        counts = _counts(texts)
        rarity = _rarity(counts)
        line = Ridge(PENALTY, solver="lsqr").fit(_weighed(counts, rarity), labels)
        return cls(rarity, np.asarray(line.coef_, dtype=np.float64), float(line.intercept_))

    @classmethod
    def of_pairs(cls, better: Sequence[str], worse: Sequence[str], targets: Exact) -> WordLine:
        """Least-squares classification of differences; targets (n,) are 1, or 1/2 for a tie."""
        from sklearn.linear_model import Ridge

        counts = _counts([*better, *worse])
        rarity = _rarity(counts)
        rows = _weighed(counts, rarity)
        differences = rows[: len(better)] - rows[len(better) :]
        line = Ridge(PENALTY, fit_intercept=False, solver="lsqr").fit(differences, 2.0 * targets - 1.0)
        return cls(rarity, np.asarray(line.coef_, dtype=np.float64))

    def __call__(self, texts: Sequence[str]) -> Exact:
        """Values, shape (n,)."""
        return np.asarray(_weighed(_counts(texts), self.rarity) @ self.weights + self.intercept)

    def packed(self) -> bytes:
        """For a file of the artefact."""
        intercept = np.array([self.intercept])
        return save({"rarity": self.rarity, "weights": self.weights, "intercept": intercept})

    @classmethod
    def unpacked(cls, content: bytes) -> WordLine:
        """The inverse of `packed`."""
        found = load(content)
        return cls(found["rarity"], found["weights"], float(found["intercept"][0]))


def _counts(texts: Sequence[str]) -> csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=BUCKETS, alternate_sign=False, norm=None, ngram_range=(1, 2)).transform(texts)


def _rarity(counts: csr_matrix) -> Exact:
    """Smoothed, as scikit-learn's `TfidfTransformer`."""
    known = np.bincount(counts.indices, minlength=BUCKETS)
    return np.asarray(np.log((1.0 + counts.shape[0]) / (1.0 + known)) + 1.0)


def _weighed(counts: csr_matrix, rarity: Exact) -> csr_matrix:
    """Rows of unit length."""
    from scipy.sparse import csr_matrix, diags

    rows = csr_matrix(counts @ diags(rarity))
    sizes = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return csr_matrix(diags(1.0 / np.where(sizes > 0.0, sizes, 1.0)) @ rows)
