"""The directions in which many rows vary most, from rows that come a few at a time.

What is held is one matrix of the columns that vary by as many, of which half is used, whatever the number of rows.
SciPy is imported when it is needed: every server imports this, and only what fits models calls it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Exact = NDArray[np.float64]

LEAST_SHARE = 1e-10
"""Of the largest sum of squares: what is smaller is rounding."""


class Scatter:
    """The sum of x x' over all rows x."""

    def __init__(self, varies: NDArray[np.bool_]) -> None:
        """Args: varies: the columns that are not 0 in all rows, shape (width,)."""
        self._columns = np.flatnonzero(varies)
        self._width = len(varies)
        # In this order BLAS adds to it where it is.
        self._sum: Exact = np.zeros((len(self._columns), len(self._columns)), order="F")

    def add(self, rows: Exact) -> None:
        """Rows (n, width)."""
        from scipy.linalg.blas import dsyrk

        if len(rows) and len(self._columns):
            own = np.ascontiguousarray(rows[:, self._columns])
            self._sum = dsyrk(1.0, own.T, beta=1.0, c=self._sum, overwrite_c=1)

    def strongest(self, most: int) -> tuple[Exact, Exact]:
        """At most so many orthonormal directions (r, width), and the sum of squares (r,) along each.

        The sum is used up by this.
        """
        from scipy.linalg import eigh

        count = len(self._columns)
        if not count:
            return np.zeros((0, self._width)), np.zeros(0)
        first = max(0, count - most)
        found, self._sum = self._sum, np.zeros((0, 0))
        strengths, basis = eigh(
            found, lower=False, overwrite_a=True, check_finite=False, subset_by_index=(first, count - 1)
        )
        kept = strengths > LEAST_SHARE * max(float(strengths[-1]), 1e-30)
        directions = np.zeros((int(kept.sum()), self._width))
        directions[:, self._columns] = basis[:, kept].T
        return directions, strengths[kept]
