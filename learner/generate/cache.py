"""Keys and values in buffers that grow by doubling: a step writes its own tokens, and copies nothing of the past.

The cache of transformers makes a new tensor of the whole past for every token of every layer. While a layer has a
`place`, it writes one token there and shows its whole buffers: the same addresses and shapes at every step, which is
what a CUDA graph needs.
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
        self.buffers: tuple[Tensor, Tensor] | None = None
        """Keys and values [rows, heads, capacity, width]; the same object as long as the addresses are the same."""
        self.place: Tensor | None = None
        """[1]: where `update` writes its token, in place of the end."""

    @property
    def capacity(self) -> int:
        """The number of tokens of each row that there is room for."""
        return 0 if self.buffers is None else self.buffers[0].shape[2]

    def reserve(self, more: int) -> None:
        """Room for so many tokens after those that are there."""
        if self.buffers is not None:
            self._room(*self.buffers, self._length + more)

    def advance(self) -> None:
        """The token that was written at `place`, right after the last one, counts from now on."""
        self._show(self._length + 1)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Take in new tokens; all keys and values there are now."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if self.place is not None and self.buffers is not None:
            for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
                buffer.index_copy_(2, self.place, states.to(buffer.dtype))
            return self.buffers
        end = self._length + key_states.shape[2]
        keys, values = self._room(key_states, value_states, end)
        keys[:, :, self._length : end] = key_states
        values[:, :, self._length : end] = value_states
        return self._show(end)

    def _show(self, length: int) -> tuple[Tensor, Tensor]:
        """From now on, so many tokens are there."""
        assert self.buffers is not None
        keys, values = (each[:, :, :length] for each in self.buffers)
        self._length, self.keys, self.values = length, keys, values
        return keys, values

    def _room(self, key_states: Tensor, value_states: Tensor, end: int) -> tuple[Tensor, Tensor]:
        """Buffers of at least that capacity."""
        if self.buffers is not None and self.buffers[0].shape[2] >= end:
            return self.buffers
        capacity = max(FIRST_CAPACITY, end, 0 if self.buffers is None else 2 * self.buffers[0].shape[2])
        made = []
        for number, states in enumerate((key_states, value_states)):
            rows, heads, _, width = states.shape
            # Zeros, since a masked place still counts 0 times what is there, and 0 times a NaN is one.
            buffer = states.new_zeros((rows, heads, capacity, width))
            if self.buffers is not None:
                buffer[:, :, : self._length] = self.buffers[number][:, :, : self._length]
            made.append(buffer)
        self.buffers = (made[0], made[1])
        return self.buffers

    def get_seq_length(self) -> int:
        """The number of tokens of each row that are there."""
        return self._length

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows."""
        if self.buffers is None:
            return
        place = indices.to(self.buffers[0].device)
        self.buffers = (self.buffers[0].index_select(0, place), self.buffers[1].index_select(0, place))
        self._show(self._length)
