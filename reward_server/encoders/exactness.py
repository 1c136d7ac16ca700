"""Measures whether a text has bit for bit the same vector alone and beside others, on the machine at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

Tokens = list[int]
Forward = Callable[[Sequence[Tokens]], Tensor]
"""Token ids of texts that are sorted by length to their vectors, shape (texts, width), fp32."""


def is_exact(forward: Forward, counts: Mapping[int, int], company: Mapping[int, int] = MappingProxyType({})) -> bool:
    """True if texts get bit for bit the vectors in one pack that they get alone.

    Args:
        forward: what is measured.
        counts: of texts by length.
        company: of longer texts that only fill the pack, and are not computed alone.
    """
    rows = _made_up(counts)
    packed = list(zip(rows, forward([*rows, *_made_up(company)]), strict=False))
    # The longest first: where sums depend on the number of rows, that is found at once.
    same = all(torch.equal(forward([row])[0], vector) for row, vector in reversed(packed))
    return same and all(map(torch.equal, forward(rows[::3]), (vector for _, vector in packed[::3])))


def _made_up(counts: Mapping[int, int]) -> list[Tokens]:
    return [
        [101, *(1996 + 37 * row + step for step in range(length - 2)), 102]
        for length, count in counts.items()
        for row in range(count)
    ]
