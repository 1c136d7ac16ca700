"""Products of float32 matrices by oneDNN, where the library that torch asks is the slower one.

torch multiplies float32 matrices with MKL, which takes half of the vector unit of a processor with AVX-512 that is not
Intel's. There, oneDNN is about twice as fast; the sums are the same but for the order of their terms. Which one is used
depends on the processor alone and is not timed: a resumed run must compute as the first one did.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

LEAST_ROWS = 16
"""With fewer, calling oneDNN takes longer than it saves."""


@cache
def onednn_pays() -> bool:
    """True if this is a processor on which oneDNN is the faster library, and this torch can ask it."""
    try:
        vendor = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    if "GenuineIntel" in vendor or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    probe = torch.linspace(-1.0, 1.0, 12).view(4, 3)
    try:
        return torch.allclose(_by_onednn(probe, probe), probe @ probe.T, atol=1e-5)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def multiply_fast(model: nn.Module) -> None:
    """Have the linear layers of a model multiply by oneDNN, where that pays; its weights and names stay as they are."""
    if onednn_pays():
        for module in model.modules():
            if type(module) is nn.Linear:
                module.__class__ = FastLinear


class FastLinear(nn.Linear):
    """A linear layer that asks oneDNN for products of float32 matrices on a CPU."""

    def forward(self, rows: Tensor) -> Tensor:
        """[..., out] of [..., in]."""
        if torch.compiler.is_compiling() or not _suits(rows, self.weight) or torch.is_autocast_enabled("cpu"):
            return super().forward(rows)
        if not torch.is_grad_enabled():
            return _by_onednn(rows, self.weight, self.bias)
        found: Tensor = _Product.apply(rows, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return found


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[..., out]: rows [..., in] times weight [out, in], without a gradient."""
    if onednn_pays() and _suits(rows, weight):
        return _by_onednn(rows, weight, bias)
    return nn.functional.linear(rows, weight, bias)


def weight_gradient(by_output: Tensor, rows: Tensor) -> Tensor:
    """[out, in]: of a weight, from the gradient by its output [n, out] and what it was multiplied with [n, in]."""
    # oneDNN copies its first matrix if it is transposed: let it be the smaller one.
    if by_output.shape[1] > rows.shape[1]:
        return linear(rows.T, by_output.T).T
    return linear(by_output.T, rows.T)


def _suits(rows: Tensor, weight: Tensor) -> bool:
    return (
        rows.dtype is torch.float32
        and weight.dtype is torch.float32
        and rows.device.type == "cpu"
        and rows.numel() >= LEAST_ROWS * rows.shape[-1]
    )


def _by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _by_onednn(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_output: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        flat = by_output.reshape(-1, by_output.shape[-1])
        for_rows, for_weight, for_bias = ctx.needs_input_grad
        return (
            linear(by_output, weight.T) if for_rows else None,
            weight_gradient(flat, rows.reshape(len(flat), -1)) if for_weight else None,
            flat.sum(0) if for_bias else None,
        )
