"""How the authored texts of a case are laid out as columns of a similarity matrix, and how columns become scores.

A topic's score is a weighted mean of its closest example questions: the closest one decides, the next two
steady it, because a single odd example would otherwise win questions that belong elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLOSEST = 0.7
"""The share of the closest example; the rest is the mean of the three closest."""
STEADIED_BY = 3


@dataclass(frozen=True, slots=True)
class Span:
    """A run of columns."""

    start: int
    stop: int


class Texts:
    """Collects texts and hands out the spans they will have."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, texts: Iterable[str]) -> Span:
        """Appends texts and says where they are."""
        start = len(self.texts)
        self.texts += texts
        return Span(start, len(self.texts))


class AskGrid:
    """The example questions of all topics as one index array, so that all scores come from one operation."""

    def __init__(self, spans: Sequence[Span]) -> None:
        width = max([STEADIED_BY, *(span.stop - span.start for span in spans)])
        self._columns = np.zeros((len(spans), width), dtype=np.intp)
        self._empty = np.ones((len(spans), width), dtype=bool)
        self._weights = np.zeros((len(spans), STEADIED_BY))
        for i, span in enumerate(spans):
            size = span.stop - span.start
            self._columns[i, :size] = np.arange(span.start, span.stop)
            self._empty[i, :size] = False
            if size:
                steady = min(size, STEADIED_BY)
                self._weights[i, STEADIED_BY - steady :] = (1 - CLOSEST) / steady
                self._weights[i, -1] += CLOSEST

    def scores(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """One score per topic from the cosines of one text with every column; 0 without examples."""
        values = row[self._columns]
        values[self._empty] = -1.0
        values.sort(axis=1)
        return np.asarray((values[:, -STEADIED_BY:] * self._weights).sum(axis=1))
