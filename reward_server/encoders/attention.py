"""Attention over packed texts, each to itself alone: two ways whose last bits differ.

Both take the queries (already scaled by 1/sqrt(32)), keys and values of all tokens as the rows of one bf16 matrix,
shape (tokens, 3 * 384), and the runs of equal length in it, [(tokens of a text, texts)]; they return (tokens, 384).
Which is faster depends on the processor: on Zen 4 it was `by_products`; with AMX, given keys in whole blocks, it is
`by_kernel` (`benchmarks.forward_ways`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor

from reward_server.encoders.minilm import HEADS, WIDTH

HEAD_WIDTH = WIDTH // HEADS
SCORES_AT_ONCE = 300_000
"""Attention scores of this many pairs stay in a core's cache between the two products (bf16, 0.6 MB)."""
SHORT = 24
"""Measured: below so many tokens the fused kernel takes longer than its parts."""
LONG = 400
"""Measured: from so many tokens on, whole blocks of keys save less than masking them costs."""
BLOCK = 16
"""A processor with AMX multiplies tiles of 16 rows; the fused kernel is slow on what is left over."""

Run = tuple[int, int]
Attention = Callable[[Tensor, Sequence[Run]], Tensor]


def by_products(packed: Tensor, runs: Sequence[Run]) -> Tensor:
    """Two batched products per text around one exponential."""
    mixed = packed.new_empty((packed.shape[0], WIDTH))
    for texts, out in _each(packed, mixed, runs):
        _by_products(texts, out)
    return mixed


def by_kernel(packed: Tensor, runs: Sequence[Run]) -> Tensor:
    """The library's fused attention, but for short texts."""
    mixed = packed.new_empty((packed.shape[0], WIDTH))
    for texts, out in _each(packed, mixed, runs):
        if texts.shape[1] < SHORT:
            _by_products(texts, out)
        else:
            _by_kernel(texts, out)
    return mixed


def _each(packed: Tensor, mixed: Tensor, runs: Sequence[Run]) -> Iterator[tuple[Tensor, Tensor]]:
    """The rows of each run as (texts, tokens, 3, heads, 32), and where its result goes, (texts, tokens, heads, 32)."""
    start = 0
    for length, count in runs:
        stop = start + length * count
        yield (
            packed[start:stop].view(count, length, 3, HEADS, HEAD_WIDTH),
            mixed[start:stop].view(count, length, HEADS, HEAD_WIDTH),
        )
        start = stop


def _by_products(texts: Tensor, out: Tensor) -> None:
    count, length = texts.shape[:2]
    sizes = _powers_of_two(count, max(1, SCORES_AT_ONCE // (HEADS * length * length)))
    for some, results in zip(torch.split(texts, sizes), torch.split(out, sizes), strict=True):
        flat = (some.shape[0] * HEADS, length, HEAD_WIDTH)
        query, key, value = some.permute(2, 0, 3, 1, 4).reshape(3, *flat)
        # Scores are small numbers here (the softmax needs no maximum taken off); where they are not, the sum is
        # infinite, the vector is not a number, and the text is computed in fp32.
        odds = torch.bmm(query, key.transpose(1, 2)).exp_()
        means = torch.bmm(odds, value).div_(odds.sum(-1, keepdim=True))
        results.copy_(means.view(-1, HEADS, length, HEAD_WIDTH).transpose(1, 2))


def _powers_of_two(count: int, most: int) -> list[int]:
    """Sizes that add up to `count`: a kernel is compiled for each size, so there must not be many."""
    largest = 1 << (most.bit_length() - 1)
    sizes = [largest] * (count // largest)
    rest = count % largest
    return sizes + [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]


def _by_kernel(texts: Tensor, out: Tensor) -> None:
    length = texts.shape[1]
    query, key, value = texts.permute(2, 0, 3, 1, 4)
    missing = -length % BLOCK if length < LONG else 0
    mask = None
    if missing:  # more keys that nobody attends to: a weight of exactly 0
        key, value = F.pad(texts[:, :, 1:], (0, 0, 0, 0, 0, 0, 0, missing)).permute(2, 0, 3, 1, 4)
        mask = texts.new_zeros((1, 1, 1, length + missing))
        mask[..., length:] = -math.inf
    out.copy_(F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0).transpose(1, 2))
