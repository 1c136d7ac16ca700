"""Keys and values in buffers that grow by doubling: a step writes its own tokens, and copies nothing of the past.

The cache of transformers makes a new tensor of the whole past for every token of every layer.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

FIRST_CAPACITY = 128


def growing_cache() -> Cache:
    """An empty cache for a model that looks back over everything, or is masked where it does not."""
    return Cache(layer_class_to_replicate=GrowingLayer)


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer's keys and values, [rows, heads, capacity, width], of which `length` are there."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._length = 0
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Take in new tokens; all keys and values there are now."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self._length + key_states.shape[2]
        keys, values = self._room(key_states, value_states, end)
        keys[:, :, self._length : end] = key_states
        values[:, :, self._length : end] = value_states
        self._length = end
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def _room(self, key_states: Tensor, value_states: Tensor, end: int) -> tuple[Tensor, Tensor]:
        """Buffers of at least that capacity."""
        if self._buffers is not None and self._buffers[0].shape[2] >= end:
            return self._buffers
        capacity = max(FIRST_CAPACITY, end, 0 if self._buffers is None else 2 * self._buffers[0].shape[2])
        made = []
        for number, states in enumerate((key_states, value_states)):
            rows, heads, _, width = states.shape
            buffer = states.new_empty((rows, heads, capacity, width))
            if self._buffers is not None:
                buffer[:, :, : self._length] = self._buffers[number][:, :, : self._length]
            made.append(buffer)
        self._buffers = (made[0], made[1])
        return self._buffers

    def get_seq_length(self) -> int:
        """How many tokens of each row are there."""
        return self._length

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows."""
        if self._buffers is None:
            return
        place = indices.to(self._buffers[0].device)
        self._buffers = (self._buffers[0].index_select(0, place), self._buffers[1].index_select(0, place))
        self.keys, self.values = (each[:, :, : self._length] for each in self._buffers)
