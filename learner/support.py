"""The tokens that could be drawn at each place, where top-k or top-p leave some out.

The loss needs the log-probabilities of the very distribution that was sampled from. Which tokens that left out changes
with the weights, so it is not looked up again: the sampler keeps the set, and the learner gives each token its
probability within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from learner.types import Segment

NOTHING = float("-inf")


@dataclass(frozen=True)
class Truncation:
    """The limits of sampling: the `top_k` likeliest tokens (0: all), and of those the part within `top_p`."""

    top_p: float = 1.0
    top_k: int = 0

    def __bool__(self) -> bool:
        """True if anything is left out."""
        return self.top_p < 1.0 or self.top_k > 0

    def support(self, logits: Tensor) -> Tensor:
        """[B, vocabulary], True where a token may be drawn; the likeliest one always may."""
        allowed = logits > NOTHING
        if 0 < self.top_k < logits.shape[-1]:
            allowed &= logits >= logits.topk(self.top_k).values[:, -1:]
        if self.top_p < 1.0:
            left = logits.masked_fill(~allowed, NOTHING)
            share, order = left.softmax(-1).sort(descending=True)
            before = share.cumsum(-1) - share
            allowed &= torch.zeros_like(allowed).scatter(1, order, before < self.top_p)
        return allowed


def listed(allowed: Tensor) -> list[tuple[int, ...]]:
    """The tokens of each row."""
    return [tuple(row.nonzero()[:, 0].tolist()) for row in allowed.cpu()]


@dataclass(frozen=True)
class Supports:
    """The sets of [N] places; a place without one has all tokens."""

    sets: Sequence[tuple[int, ...] | None]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Segment]]) -> Supports | None:
        """Of the sampled tokens of these rows, in order; None where nothing was left out."""
        sets: list[tuple[int, ...] | None] = []
        for segment in (segment for row in rows for segment in row if segment.sampled):
            sets += segment.support or [None] * len(segment.ids)
        return cls(sets) if any(each is not None for each in sets) else None

    def narrow(self, logits: Tensor, start: int = 0) -> Tensor:
        """[n, vocabulary] of the places from `start` on, with nothing left where a token could not be drawn."""
        part = self.sets[start : start + len(logits)]
        allowed = torch.zeros(logits.shape, dtype=torch.bool)
        for row, tokens in enumerate(part):
            allowed[row, slice(None) if tokens is None else list(tokens)] = True
        return logits.masked_fill(~allowed.to(logits.device), NOTHING)
