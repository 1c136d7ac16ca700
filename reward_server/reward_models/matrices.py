"""A part of a data set as matrices, the form in which heads are fitted and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.feature_rows import FeatureRows, blanked, blocks, gathered
from reward_server.reward_models.feature_shelf import CachedFeatures
from reward_server.reward_models.heads import Exact, Matrix, standardised


@dataclass(frozen=True)
class ExampleMatrices:
    """A part of a data set as matrices; NaN where a row has no label for a head."""

    features: FeatureRows
    """Shape (labelled, width)."""
    labels: Matrix
    """Shape (labelled, heads)."""
    chosen: FeatureRows
    """Shape (pairs, width)."""
    rejected: FeatureRows
    """Shape (pairs, width)."""
    targets: Matrix
    """1, or 1/2 for a tie; shape (pairs,)."""
    weights: Matrix
    """Shape (pairs,)."""

    @property
    def parts(self) -> tuple[FeatureRows, FeatureRows, FeatureRows]:
        """The features of every conversation, which together would be a copy."""
        return self.features, self.chosen, self.rejected

    @property
    def all_features(self) -> Matrix:
        """The features of every conversation in memory, shape (labelled + 2 pairs, width)."""
        return np.concatenate([part[:] for part in self.parts])

    def without(self, columns: NDArray[np.bool_] | None) -> ExampleMatrices:
        """The same with these features (width,) at 0, so that nothing is learned of them."""
        if columns is None or not columns.any():
            return self
        features, chosen, rejected = (blanked(rows, columns) for rows in self.parts)
        return replace(self, features=features, chosen=chosen, rejected=rejected)

    @classmethod
    def of(
        cls, dataset: Dataset, features: Mapping[str, Matrix], names: tuple[str, ...], width: int
    ) -> ExampleMatrices:
        """The rows of a data set, in its order; `features` are by the conversations' digests."""

        def stacked(digests: list[str]) -> FeatureRows:
            if isinstance(features, CachedFeatures):
                return features.rows(digests)
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


def moments(parts: Sequence[FeatureRows]) -> tuple[Exact, Exact]:
    """Mean and standard deviation of each feature over the rows of all parts, shape (width,) each."""
    count = max(1, sum(len(part) for part in parts))
    width = parts[0].shape[1]
    centre = sum((block.sum(axis=0) for block in _exact(parts)), np.zeros(width)) / count
    squares = sum((_squares(block, centre) for block in _exact(parts)), np.zeros(width))
    return centre, np.sqrt(squares / count)


def scaled(rows: FeatureRows, centre: Exact, scale: Exact, folder: Path | None = None) -> FeatureRows:
    """(rows - centre) / scale, computed in double precision and rounded, shape (n, width).

    `folder` is where rows go that are too many for memory.
    """
    found = (standardised(block, centre, scale).astype(np.float32) for block in blocks(rows))
    return gathered(found, rows.shape[1], folder, len(rows))


def _squares(block: Exact, centre: Exact) -> Exact:
    block -= centre
    block *= block
    found: Exact = block.sum(axis=0)
    return found


def _exact(parts: Sequence[FeatureRows]) -> Iterator[Exact]:
    for part in parts:
        for block in blocks(part):
            yield block.astype(np.float64)
