"""The data that calibrations are fitted on: rewards beside labels, or pairs beside their winners.

Columns of float64, one entry per row; several named rewards stay several columns. What is wrong with them is told by
`calibration_fit`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.reliability import Floats


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """n conversations with one or more named rewards each, and perhaps a label."""

    rewards: Mapping[str, Floats]
    """(n,) by name."""
    labels: Floats | None
    """(n,) in [0, 1]; None without labels."""
    groups: tuple[str, ...]
    """(n,): the dialogue of each row."""

    @property
    def names(self) -> list[str]:
        """Names of the rewards, sorted."""
        return sorted(self.rewards)

    @property
    def columns(self) -> list[Floats]:
        """Everything that is fitted on, in one order."""
        return [*([] if self.labels is None else [self.labels]), *(self.rewards[name] for name in self.names)]

    def ordered(self) -> Self:
        """The same rows sorted by what they hold, so that no sum depends on how they were given."""
        order = _order(self.columns, self.groups)
        return type(self)(
            {name: self.rewards[name][order] for name in self.names},
            None if self.labels is None else self.labels[order],
            tuple(self.groups[row] for row in order),
        )

    @property
    def digest(self) -> str:
        """A hash of everything that is fitted on, whatever the order of the rows."""
        return _digest("rows", self.names, self.ordered())


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """n pairs of conversations with named rewards, and which side people preferred."""

    first: Mapping[str, Floats]
    """(n,) by name."""
    second: Mapping[str, Floats]
    """(n,) by name, the same names."""
    outcomes: Floats
    """(n,): 1 where the first won, 0 where the second did, 0.5 for a tie."""
    groups: tuple[str, ...]
    """(n,): the dialogue of each pair."""

    @property
    def names(self) -> list[str]:
        """Names of the rewards, sorted."""
        return sorted(self.first)

    @property
    def columns(self) -> list[Floats]:
        """Everything that is fitted on, in one order."""
        return [self.outcomes, *(side[name] for name in self.names for side in (self.first, self.second))]

    def ordered(self) -> Self:
        """The same pairs sorted by what they hold, so that no sum depends on how they were given."""
        order = _order(self.columns, self.groups)
        first, second = ({name: side[name][order] for name in self.names} for side in (self.first, self.second))
        return type(self)(first, second, self.outcomes[order], tuple(self.groups[row] for row in order))

    @property
    def digest(self) -> str:
        """A hash of everything that is fitted on, whatever the order of the pairs."""
        return _digest("pairs", self.names, self.ordered())


def _order(columns: Sequence[Floats], groups: Sequence[str]) -> NDArray[np.intp]:
    return np.lexsort([*columns, np.asarray(groups, dtype=np.str_)])


def _digest(kind: str, names: Sequence[str], ordered: LabelledRows | JudgedPairs) -> str:
    rows = list(zip(ordered.groups, *(column.tolist() for column in ordered.columns), strict=True))
    return hashlib.sha256(repr((kind, list(names), rows)).encode("utf-8", "replace")).hexdigest()
