"""The learned part of a reward model: one linear head per dimension and one for the whole, on fixed features.

A head's output is its value: labels in [0, 1] are fitted as they are and the output is cut to [0, 1], with no sigmoid
over it. Only a model that has seen nothing but preferences has no scale of its own; its value is the chance
of winning against a conversation of average reward, sigmoid(b r) (Bradley & Terry 1952).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.feature_rows import FeatureRows, blocks

Matrix = NDArray[np.float32]
Exact = NDArray[np.float64]
Link = Literal["identity", "preference"]


class Featuriser(Protocol):
    """Conversations in, features out. Blocking and thread-safe."""

    @property
    def version(self) -> str:
        """Changes whenever a feature may."""

    @property
    def width(self) -> int:
        """The number of features of a conversation."""

    @property
    def emphasis(self) -> Matrix:
        """The freedom of a head to use each feature once it is standardised, shape (width,)."""

    @property
    def kinds(self) -> NDArray[np.intp]:
        """The number, from 0, of the kind that each feature is of, shape (width,); see `emphasis`."""

    @property
    def costs(self) -> NDArray[np.bool_]:
        """The features that may only lower a value, shape (width,): heads give them no positive weight."""

    @property
    def readings(self) -> Mapping[str, NDArray[np.bool_]]:
        """Ways to read these features, by name: which ones are left out, shape (width,); training tries them all."""

    @property
    def relations(self) -> Mapping[str, int]:
        """By name, the places of features that say how far a reply goes with what it answers; there may be none."""

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width); a row depends on its own conversation alone."""

    def forget(self) -> None:
        """Give back the memory of what only saves time."""


@dataclass(frozen=True)
class Heads:
    """Trained heads. Row h of `weights` and entry h of `bias` belong to `names[h]`; the first is the overall one."""

    names: tuple[str, ...]
    centre: Matrix
    """Mean of each feature over the training conversations, shape (width,)."""
    scale: Matrix
    """What a centred feature is divided by: its spread, over its emphasis; shape (width,)."""
    weights: Matrix
    """Shape (heads, width)."""
    bias: Matrix
    """Shape (heads,)."""
    sharpness: float = 1.0
    """Log-odds of being preferred per unit of difference of the overall head."""
    link: Link = "identity"
    costs: NDArray[np.bool_] | None = None
    """Features that may only lower a value, shape (width,); None where all may do both."""

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.centre.shape[0])

    @property
    def varies(self) -> NDArray[np.bool_]:
        """The features that differed between training conversations, shape (width,); others are 0 once standardised."""
        return np.isfinite(self.scale)

    def standardised(self, features: Matrix) -> Exact:
        """Features on the scale that the weights are for, shape (n, width)."""
        return standardised(features, self.centre.astype(np.float64), self.scale.astype(np.float64))

    def earning(self, features: Matrix) -> Exact:
        """Standardised features less those that only cost: doubt is not about them, or they could lower it."""
        rows = self.standardised(features)
        if self.costs is not None:
            rows[:, self.costs] = 0.0
        return rows

    def raw(self, features: FeatureRows) -> Exact:
        """Outputs before cutting, shape (n, heads). A row is the same in any batch."""
        return self._outputs(self.standardised, features)

    def earned(self, features: FeatureRows) -> Exact:
        """Outputs without what only costs, shape (n, heads)."""
        return self._outputs(self.earning, features)

    def _outputs(self, prepared: Callable[[Matrix], Exact], features: FeatureRows) -> Exact:
        weights, bias = self.weights.astype(np.float64), self.bias.astype(np.float64)
        # One product per row: a product of matrices may order its sums by how many rows there are.
        products = [weights @ row + bias for block in blocks(features) for row in prepared(block)]
        return np.array(products, dtype=np.float64).reshape(len(features), len(self.names))

    def values(self, features: FeatureRows) -> Exact:
        """Values in [0, 1], shape (n, heads)."""
        return self.valued(self.raw(features))

    def valued(self, raw: Exact) -> Exact:
        """Raw outputs as values in [0, 1]."""
        if self.link == "preference":
            return sigmoid(self.sharpness * raw)
        clipped: Exact = np.clip(raw, 0.0, 1.0)
        return clipped

    def chances(self, chosen: FeatureRows, rejected: FeatureRows) -> Exact:
        """P(chosen is preferred), shape (n,): sigmoid of the scaled difference of the overall head."""
        return sigmoid(self.sharpness * (self.raw(chosen)[:, 0] - self.raw(rejected)[:, 0]))


def standardised(features: Matrix, centre: Exact, scale: Exact) -> Exact:
    """(features - centre) / scale in double precision, with no more than the result in memory beside the features."""
    rows = features.astype(np.float64)
    rows -= centre
    rows /= scale
    return rows


def sigmoid(x: Exact) -> Exact:
    """The logistic function, without overflow."""
    tame = np.exp(-np.abs(x))
    result: Exact = np.where(x >= 0, 1.0, tame) / (1.0 + tame)
    return result
