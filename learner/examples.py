"""Episodes on their way into a step, and how many of them go through the model at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from learner.packing import added_size
from learner.types import Segment, Trajectory


@dataclass
class Example:
    """An episode on its way into a step; tensors are [N] over its sampled tokens, in order."""

    trajectory: Trajectory
    advantages: Tensor
    old_logp: Tensor | None = None
    reference_logp: Tensor | None = None
    values: Tensor | None = None
    returns: Tensor | None = None

    @property
    def tokens(self) -> int:
        """The number of tokens that are trained on."""
        return self.trajectory.sampled_tokens


def sampler_logp(trajectory: Trajectory) -> Tensor:
    """[N]: what the sampler said of the sampled tokens."""
    return torch.tensor([value for segment in trajectory.segments for value in segment.logp or ()])


def joined(examples: Sequence[Example], name: str) -> Tensor | None:
    """[N] of all examples; None if one of them lacks it."""
    parts = [getattr(example, name) for example in examples]
    return None if any(part is None for part in parts) else torch.cat(parts)


def split(examples: Sequence[Example], parts: int) -> list[Sequence[Example]]:
    """Near-equal parts, dealt out in turn so that no part is one group's."""
    parts = max(1, min(parts, len(examples)))
    return [examples[start::parts] for start in range(parts)]


def by_tokens(examples: Sequence[Example], budget: int, *, packs: bool) -> Iterator[list[Example]]:
    """As many examples at once as the budget of tokens allows: of packed tokens, or of padded ones."""
    micro: list[Example] = []
    size = _PackedSize() if packs else _PaddedSize()
    # Packed, neighbours are of one group and begin alike; padded, rows of similar length belong together.
    for example in examples if packs else sorted(examples, key=lambda example: _width(example.trajectory)):
        if micro and size.with_(example) > budget:
            yield micro
            micro, size = [], type(size)()
        size.add(example)
        micro.append(example)
    if micro:
        yield micro


class _PackedSize:
    """Tokens of a packed row."""

    def __init__(self) -> None:
        self._tokens = 0
        self._last: tuple[Segment, ...] | None = None

    def with_(self, example: Example) -> int:
        tokens, last = self._tokens, self._last
        for row in example.trajectory.rows:
            tokens, last = tokens + added_size(row, last), row
        return tokens

    def add(self, example: Example) -> None:
        self._tokens, self._last = self.with_(example), example.trajectory.rows[-1]


class _PaddedSize:
    """Places of rows of one width; they come shortest first."""

    def __init__(self) -> None:
        self._rows = 0

    def with_(self, example: Example) -> int:
        return _width(example.trajectory) * (self._rows + len(example.trajectory.rows))

    def add(self, example: Example) -> None:
        self._rows += len(example.trajectory.rows)


def _width(trajectory: Trajectory) -> int:
    return max(sum(len(segment.ids) for segment in row) for row in trajectory.rows)
