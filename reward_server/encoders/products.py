"""Products of many rows with a weight matrix: through torch's public functions, or through oneDNN's own layout.

On CPU, a matrix can be laid out once for oneDNN, and bias, GELU and residual added inside the product. In fp32 that
pays most on AMD's processors, for which the library behind the public functions is not made. It uses private operators
of torch, so whoever takes it compares its results with the public ones first, and does without where they fail.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor

ROWS_EXPECTED = 2048
"""The layout of pre-packed matrices is chosen for so many rows; others are multiplied as well."""
FULL_ROWS = 512
"""Measured in bf16 with AMX: with fewer than 385 rows, long sums are split up and ordered differently."""
UNAVAILABLE = (AttributeError, RuntimeError, TypeError, NotImplementedError)
"""What is raised where this torch lacks the private operators, or has others."""

Pair = tuple[Tensor, Tensor]


class Products:
    """Products with a weight matrix, through public functions."""

    method = "bf16"
    error = 1e-4
    """In fp32, a number of a unit vector is at most so far from what the public functions give."""
    tokens_per_pack = 2048
    """Measured: as fast as 8,192, and with AMX a tenth faster than 4,096: buffers stay in caches."""

    def __init__(self, least_rows: int = 0) -> None:
        """Args: least_rows: the product with the widest rows is filled up to so many, so that all are summed alike."""
        self.least_rows = least_rows

    def laid_out(self, pair: Pair) -> Pair:
        """Weight and bias as the products want them."""
        return pair

    def plain(self, rows: Tensor, pair: Pair) -> Tensor:
        """W x + b."""
        return F.linear(rows, *pair)

    def gelu(self, rows: Tensor, pair: Pair) -> Tensor:
        """gelu(W x + b), with the error function."""
        return F.gelu(F.linear(rows, *pair))

    def added(self, rows: Tensor, pair: Pair, residual: Tensor) -> Tensor:
        """W x + b + residual."""
        missing = self.least_rows - rows.shape[0] if rows.shape[1] > residual.shape[1] else 0
        if missing <= 0:
            return self._added(rows, pair, residual)
        filler = (0, 0, 0, missing)
        return self._added(F.pad(rows, filler), pair, F.pad(residual, filler))[:-missing]

    def _added(self, rows: Tensor, pair: Pair, residual: Tensor) -> Tensor:
        return F.linear(rows, *pair).add_(residual)


class PrepackedProducts(Products):
    """The same through oneDNN's own layout, which is faster (`benchmarks.forward_ways`)."""

    method = "bf16-prepacked"

    def laid_out(self, pair: Pair) -> Pair:
        """The weight in the layout of oneDNN: no longer an ordinary tensor."""
        weight, bias = pair
        return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS_EXPECTED), bias

    def plain(self, rows: Tensor, pair: Pair) -> Tensor:
        """W x + b."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, *pair, "none", [], "")
        return product

    def gelu(self, rows: Tensor, pair: Pair) -> Tensor:
        """gelu(W x + b), with the error function."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, *pair, "gelu", [], "none")
        return product

    def _added(self, rows: Tensor, pair: Pair, residual: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise.binary(rows, residual, *pair, "add")
        return product
