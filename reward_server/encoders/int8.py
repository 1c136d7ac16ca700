"""Products of 8-bit numbers: a quarter of the time of fp32 where the processor multiplies int8 natively.

Rows are quantised as they come, each with a scale and a midpoint of its own, and each output of a matrix has a scale,
fixed when it is laid out: x = s q + m and w = t p give x w = s t (q p) + m t (sum of p). The q p are sums of whole
numbers, so they are the same in any order, in any pack, and by any of the two ways to add them up. Dynamic
quantisation by row and by output: Dettmers et al. 2022, LLM.int8(), section 2.2; with a midpoint: Jacob et al. 2018,
equation 7.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor

from reward_server.encoders.products import Pair, Products

LARGEST = 127
EXACT_TERMS = 1024
"""A sum of so many products of 8-bit numbers is below 2^24: fp32 holds each partial sum exactly."""
LEAST_SCALE = 1e-12
"""Of a row whose numbers are all the same."""


class Int8Products(Products):
    """Through torch's product of int8 matrices, where it is right on this processor."""

    method = "int8"
    error = 0.03
    tokens_per_pack = 512
    """Measured: a quarter faster than 2,048, for between two products the rows are read and written a dozen times."""

    def laid_out(self, pair: Pair) -> Pair:
        """The rounded weight, transposed, and per output its scale, its bias and the sum of its numbers.

        Raises:
            NotImplementedError: this processor or this torch does not multiply int8 exactly.
        """
        if not multiplies_int8():
            raise NotImplementedError("int8 is not multiplied exactly here")
        return _quantised(pair)

    def plain(self, rows: Tensor, pair: Pair) -> Tensor:
        """W x + b."""
        weight, (scale, bias, sums) = pair
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
        step = (high - low).div_(2 * LARGEST).clamp_min_(LEAST_SCALE)
        middle = low.add_(high).div_(2)
        whole = self._times(rows.sub(middle).div_(step).round_(), weight)
        return torch.addcmul(bias, whole.mul_(step).addcmul_(middle, sums), scale)

    def gelu(self, rows: Tensor, pair: Pair) -> Tensor:
        """gelu(W x + b), with the error function."""
        return F.gelu(self.plain(rows, pair))

    def _added(self, rows: Tensor, pair: Pair, residual: Tensor) -> Tensor:
        return self.plain(rows, pair).add_(residual)

    def _times(self, numbers: Tensor, weight: Tensor) -> Tensor:
        """The product of whole numbers; fp32."""
        return torch._int_mm(numbers.to(torch.int8), weight).float()


class Int8ByFloats(Int8Products):
    """The same numbers, bit for bit, through fp32: for processors that get int8 wrong, at the speed of fp32."""

    method = "int8-by-floats"

    def laid_out(self, pair: Pair) -> Pair:
        """As `Int8Products`, with the weight's whole numbers in fp32."""
        weight, rest = _quantised(pair)
        return weight.float(), rest

    def _times(self, numbers: Tensor, weight: Tensor) -> Tensor:
        parts = zip(torch.split(numbers, EXACT_TERMS, dim=1), torch.split(weight, EXACT_TERMS), strict=True)
        # Added up in whole numbers: two exact parts may have a sum that fp32 rounds.
        return sum((torch.mm(left, right).int() for left, right in parts), torch.tensor(0)).float()


INT8 = (Int8Products(), Int8ByFloats())


def _quantised(pair: Pair) -> Pair:
    weight, bias = pair
    scale = weight.abs().amax(1, keepdim=True).div(LARGEST).clamp_min(LEAST_SCALE)
    numbers = weight.div(scale).round()
    return numbers.to(torch.int8).t().contiguous(), torch.stack([scale[:, 0], bias, numbers.sum(1)])


@cache
def multiplies_int8() -> bool:
    """True if torch's product of int8 matrices is exact here: without native int8, sums of two may be cut off."""
    source = torch.Generator().manual_seed(0)
    left = torch.randint(-LARGEST, LARGEST + 1, (24, 1536), dtype=torch.int8, generator=source)
    right = torch.randint(-LARGEST, LARGEST + 1, (1536, 32), dtype=torch.int8, generator=source)
    left[0], right[:, 0], right[:, 1] = LARGEST, LARGEST, -LARGEST
    try:
        found = torch._int_mm(left, right)
    except (AttributeError, RuntimeError):
        return False
    return torch.equal(found.double(), left.double() @ right.double())
