"""Attention over a packed row, as an implementation of transformers' `AttentionInterface`.

A forward pass that is given a `packing` attends run by run; every other one, the sampler's above all, goes to `sdpa`
as before. Nothing here is global but the two names: several threads may use one model in both ways at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from learner.packing import Packed

NAME = "labs_packed"
_here = threading.local()


class CannotPackError(RuntimeError):
    """The model asks for something that attention over runs does not do."""


@contextmanager
def without_masks() -> Iterator[None]:
    """In this thread, the model makes no masks: a packed row has its own."""
    _here.packed = True
    try:
        yield
    finally:
        _here.packed = False


def _mask(*args: Any, **options: Any) -> Tensor | None:
    return None if getattr(_here, "packed", False) else sdpa_mask(*args, **options)


def _attend(  # noqa: PLR0917 - the interface is transformers's
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packing: Packed | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    if packing is None:
        found: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return found
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if options.get(name) is not None]
    if unknown or attention_mask is not None:
        raise CannotPackError(f"attention with {', '.join(unknown) or 'a mask'} of its own")
    _here.used = True
    repeated = query.shape[1] // key.shape[1]
    if repeated > 1:
        key, value = key.repeat_interleave(repeated, 1), value.repeat_interleave(repeated, 1)
    scale, window = options.get("scaling"), options.get("sliding_window")
    if query.device.type == "cpu":
        out = _by_runs(query, key, value, packing, scale=scale, window=window)
    else:
        # One kernel for all: on a GPU, launching one for each run takes longer than the places that it would leave out.
        out = functional.scaled_dot_product_attention(query, key, value, packing.mask(window), scale=scale)
    return out.transpose(1, 2).contiguous(), None


def _by_runs(
    query: Tensor, key: Tensor, value: Tensor, packing: Packed, *, scale: float | None, window: int | None
) -> Tensor:
    lengths = [run.end - run.start for run in packing.runs]
    # `split`, not slices: its gradient is one concatenation, where each slice's is a whole row of zeros.
    queries, keys, values = (torch.split(each, lengths, dim=2) for each in (query, key, value))
    out = []
    for number, run in enumerate(packing.runs):
        mask, causal = None, not run.above
        if window is not None and run.depth + lengths[number] > window:
            places = torch.cat([_span(packing, other) for other in (*run.above, number)])
            mask, causal = packing.mask(window)[run.start : run.end, places], False
        elif run.above:
            mask = packing.below(number)
        parts = (*run.above, number)
        out.append(
            functional.scaled_dot_product_attention(
                queries[number],
                torch.cat([keys[part] for part in parts], 2) if run.above else keys[number],
                torch.cat([values[part] for part in parts], 2) if run.above else values[number],
                attn_mask=mask,
                is_causal=causal,
                scale=scale,
            )
        )
    return torch.cat(out, 2)


def _span(packing: Packed, number: int) -> Tensor:
    run = packing.runs[number]
    return torch.arange(run.start, run.end)


@contextmanager
def watched() -> Iterator[list[bool]]:
    """Says, at the end, whether attention over runs was asked for in this thread."""
    _here.used = False
    seen: list[bool] = []
    yield seen
    seen.append(bool(_here.used))


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _mask)


def leave_uncompiled() -> None:
    """Have a compiled model ask for attention as it is: runs and masks differ from row to row."""
    AttentionInterface.register(NAME, torch.compiler.disable(_attend))  # type: ignore[no-untyped-call]
