"""One token more for every row, in steps of fixed shapes, which a GPU replays as a CUDA graph.

A step of a language model launches hundreds of small kernels, and for one token a row that takes longer than the
kernels do. A CUDA graph launches all of them at once, but always with the same addresses and shapes. So a step reads
its tokens, positions, masks and its place in the cache from tensors of its own, and looks at the whole room of the
cache, where a mask hides what is not there yet. A graph is recorded again when the rows or the room change.

Whether a model can be run in this way is tried and not looked up (`agrees`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from learner import agreement
from learner.generate.cache import GrowingLayer, growing_cache
from learner.model import Policy

ONE_KIND = "all"
"""Name of the mask of a model whose layers all look back in the same way."""


class FixedStep:
    """A step for the rows that a cache has now, with room for `more` tokens at least."""

    def __init__(self, policy: Policy, cache: Cache, masks: Mapping[str, Tensor], more: int) -> None:
        self._policy, self._cache = policy, cache
        self._layers = cast("list[GrowingLayer]", cache.layers)
        for layer in self._layers:
            layer.reserve(more)
        self._buffers = self._layers[0].buffers
        rows = len(next(iter(masks.values())))
        self._ids = torch.zeros((rows, 1), dtype=torch.long, device=policy.device)
        self._positions = torch.zeros_like(self._ids)
        self._place = torch.zeros(1, dtype=torch.long, device=policy.device)
        shape = (rows, 1, 1, self._layers[0].capacity)
        self._masks = {
            kind: torch.full(shape, lowest(policy), dtype=mask.dtype, device=policy.device)
            for kind, mask in masks.items()
        }
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits: Tensor | None = None
        self.records = policy.device.type == "cuda"
        """Whether steps are replays of a CUDA graph."""

    def fits(self) -> bool:
        """True if the cache still is the one that the step was made for, with room for one token more."""
        first = self._layers[0]
        return first.buffers is self._buffers and first.get_seq_length() < first.capacity

    def __call__(self, ids: Tensor, positions: Tensor, masks: Mapping[str, Tensor]) -> Tensor:
        """Logits [B, vocabulary], valid until the next call: ids and positions [B, 1], masks [B, 1, 1, kept]."""
        self._ids.copy_(ids)
        self._positions.copy_(positions)
        self._place.fill_(self._layers[0].get_seq_length())
        for kind, mask in masks.items():
            self._masks[kind][..., : mask.shape[-1]].copy_(mask)
        for layer in self._layers:
            layer.place = self._place
        try:
            logits = self._replayed() if self.records else self._forward()
        finally:
            for layer in self._layers:
                layer.place = None
        for layer in self._layers:
            layer.advance()
        return logits

    def _forward(self) -> Tensor:
        with self._policy.precision():
            logits: Tensor = self._policy.model(
                input_ids=self._ids,
                attention_mask=self._masks.get(ONE_KIND, self._masks),
                position_ids=self._positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits
        return logits[:, -1]

    def _replayed(self) -> Tensor:
        if self._graph is None or self._logits is None:
            # Libraries set themselves up at the first call, which must not be recorded; it writes what the graph will.
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self._forward()
            torch.cuda.current_stream().wait_stream(aside)
            self._graph = torch.cuda.CUDAGraph()
            # The update may use the GPU in another thread meanwhile.
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._logits = self._forward()
        self._graph.replay()
        return self._logits


def lowest(policy: Policy) -> float:
    """The number that a mask adds where nothing may be seen: finite in the products' type, or a row becomes NaN."""
    return float(torch.finfo(policy.autocast or policy.model.dtype).min)


@torch.no_grad()
def agrees(policy: Policy, kinds: Mapping[str, Any]) -> bool:
    """True if two rows, one of them with a hole before it, get the same log-probabilities in fixed shapes.

    `kinds` are the kinds of layer, which all see everything in so short a row.
    """
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(policy.model.get_output_embeddings().weight.shape[0], (2, 6), generator=draw)
    seen = torch.ones_like(ids)
    seen[1, :2] = 0
    positions = (seen.cumsum(1) - 1).clamp(min=0)
    ids, seen, positions = (each.to(policy.device) for each in (ids, seen, positions))
    try:
        found = [_two_steps(policy, kinds if fixed else None, ids, seen, positions) for fixed in (False, True)]
    except (AttributeError, TypeError, ValueError, RuntimeError, KeyError, IndexError):
        return False  # a cache, a mask or a kernel that cannot be used in this way
    return agreement.difference(policy, *found) <= agreement.allowed(policy)


def _two_steps(policy: Policy, kinds: Mapping[str, Any] | None, ids: Tensor, seen: Tensor, positions: Tensor) -> Tensor:
    """Log-probabilities [2, rows, vocabulary] after four tokens and one more, and one more."""
    cache = growing_cache()
    step: FixedStep | None = None
    said = []
    for start, end in ((0, 4), (4, 5), (5, 6)):
        if kinds is not None and start:
            blocked = torch.zeros(seen[:, :end].shape, device=policy.device).masked_fill(
                seen[:, :end] == 0, lowest(policy)
            )
            masks = {kind: blocked[:, None, None].to(policy.model.dtype) for kind in kinds}
            step = step or FixedStep(policy, cache, masks, 2)
            logits = step(ids[:, start:end], positions[:, start:end], masks).clone()
        else:
            with policy.precision():
                logits = policy.model(
                    input_ids=ids[:, start:end],
                    attention_mask=seen[:, :end],
                    position_ids=positions[:, start:end],
                    past_key_values=cache,
                    use_cache=True,
                ).logits[:, -1]
        said.append(logits.float().log_softmax(-1))
    return torch.stack(said[1:])
