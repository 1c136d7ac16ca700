"""A part of a data set as matrices, the form in which heads are fitted and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.heads import Exact, Matrix

BLOCK_ROWS = 512
"""So many rows are held in double precision at once."""


@dataclass(frozen=True)
class Examples:
    """A part of a data set as matrices; NaN where a row has no label for a head."""

    features: Matrix
    """Shape (labelled, width)."""
    labels: Matrix
    """Shape (labelled, heads)."""
    chosen: Matrix
    """Shape (pairs, width)."""
    rejected: Matrix
    """Shape (pairs, width)."""
    targets: Matrix
    """1, or 1/2 for a tie; shape (pairs,)."""
    weights: Matrix
    """Shape (pairs,)."""

    @property
    def parts(self) -> tuple[Matrix, Matrix, Matrix]:
        """The features of every conversation, which together would be a copy."""
        return self.features, self.chosen, self.rejected

    @property
    def all_features(self) -> Matrix:
        """The features of every conversation, shape (labelled + 2 pairs, width)."""
        return np.concatenate(self.parts)

    def without(self, columns: NDArray[np.bool_] | None) -> Examples:
        """The same with these features (width,) at 0, so that nothing is learned of them."""
        if columns is None or not columns.any():
            return self
        blanked = [np.where(columns, np.float32(0.0), rows) for rows in (self.features, self.chosen, self.rejected)]
        return replace(self, features=blanked[0], chosen=blanked[1], rejected=blanked[2])

    @classmethod
    def of(cls, dataset: Dataset, features: Mapping[str, Matrix], names: tuple[str, ...], width: int) -> Examples:
        """The rows of a data set, in its order; `features` are by the conversations' digests."""

        def stacked(digests: list[str]) -> Matrix:
            rows = [features[digest] for digest in digests]
            return np.stack(rows) if rows else np.zeros((0, width), dtype=np.float32)

        labelled, pairs = dataset.labelled, dataset.preferred
        labels = [[row.scores.get(name, np.nan) for name in names] for row in labelled]
        return cls(
            features=stacked([row.conversation.digest for row in labelled]),
            labels=np.array(labels, dtype=np.float32).reshape(len(labelled), len(names)),
            chosen=stacked([pair.chosen.digest for pair in pairs]),
            rejected=stacked([pair.rejected.digest for pair in pairs]),
            targets=np.array([0.5 if pair.tie else 1.0 for pair in pairs], dtype=np.float32),
            weights=np.array([pair.weight for pair in pairs], dtype=np.float32),
        )


def moments(parts: Sequence[Matrix]) -> tuple[Exact, Exact]:
    """Mean and standard deviation of each feature over the rows of all parts, shape (width,) each."""
    count = max(1, sum(len(part) for part in parts))
    width = parts[0].shape[1]
    centre = sum((block.sum(axis=0) for block in _blocks(parts)), np.zeros(width)) / count
    squares = sum((((block - centre) ** 2).sum(axis=0) for block in _blocks(parts)), np.zeros(width))
    return centre, np.sqrt(squares / count)


def scaled(rows: Matrix, centre: Exact, scale: Exact) -> Matrix:
    """(rows - centre) / scale, computed in double precision and rounded, shape (n, width)."""
    found = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        found[block] = (rows[block].astype(np.float64) - centre) / scale
    return found


def _blocks(parts: Sequence[Matrix]) -> Iterator[Exact]:
    for part in parts:
        for start in range(0, len(part), BLOCK_ROWS):
            yield part[start : start + BLOCK_ROWS].astype(np.float64)
