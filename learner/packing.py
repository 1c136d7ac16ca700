"""Many conversations in one row without a padded or a repeated token.

Rows that begin alike, as those of a group do, share that beginning: it is computed once, and what follows hangs under
it, so the whole is a forest of runs of tokens. A run attends to its own past and to the runs above it. Every position
keeps the number it has in its own conversation, so the model sees each conversation as if it were alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from learner.types import Segment

LEAST_SHARED = 16
"""A common beginning shorter than this is repeated: one more run costs more than its tokens."""

Ids = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class TokenRun:
    """Tokens `start` to `end` of the packed row, below the runs with the numbers `above`."""

    start: int
    end: int
    depth: int
    """Position of its first token in the conversation."""
    above: tuple[int, ...] = ()


@dataclass(frozen=True)
class Packed:
    """A packed row: [T] ids and positions, and what of it is scored, [N] in the order of the given rows."""

    ids: Tensor
    positions: Tensor
    runs: tuple[TokenRun, ...]
    sources: Tensor
    """Where the model says what it thinks of each sampled token: the place of the token before it."""
    targets: Tensor
    """The sampled tokens."""
    total: int
    """Tokens of all rows, had each been computed alone."""
    _masks: dict[tuple[int | None, torch.device], Tensor] = field(default_factory=dict, repr=False)
    _below: dict[int, Tensor] = field(default_factory=dict, repr=False)

    def to(self, device: torch.device) -> Packed:
        """The same on a device."""
        moved = (each.to(device) for each in (self.ids, self.positions, self.sources, self.targets))
        ids, positions, sources, targets = moved
        return Packed(ids, positions, self.runs, sources, targets, self.total)

    def below(self, number: int) -> Tensor:
        """[length, depth + length] of one run: all that is above it, and its own past."""
        if number not in self._below:
            run = self.runs[number]
            length = run.end - run.start
            self._below[number] = torch.ones(length, run.depth + length, dtype=torch.bool).tril(run.depth)
        return self._below[number]

    def mask(self, window: int | None) -> Tensor:
        """[T, T], True where a token (first axis) may look at another; with `window`, only so many positions back."""
        key = (window, self.ids.device)
        if key not in self._masks:
            self._masks[key] = self._made_mask(window)
        return self._masks[key]

    def _made_mask(self, window: int | None) -> Tensor:
        size = len(self.ids)
        allowed = torch.zeros((size, size), dtype=torch.bool)
        for number, run in enumerate(self.runs):
            for other in (*run.above, number):
                above = self.runs[other]
                allowed[run.start : run.end, above.start : above.end] = True
        reach = self.positions[:, None] - self.positions[None, :]
        allowed = allowed.to(self.ids.device) & (reach >= 0)
        return allowed if window is None else allowed & (reach < window)


def pack(rows: Sequence[Sequence[Segment]], *, least_shared: int = LEAST_SHARED) -> Packed:
    """Put conversations into one row. A sampled token must not be the first of its row."""
    ids = [_ids(row) for row in rows]
    forest = _Forest(ids, least_shared)
    sources, targets = [], []
    for number, row in enumerate(rows):
        places = forest.places(number)
        sampled = np.concatenate([np.full(len(segment.ids), segment.sampled) for segment in row])
        at = np.flatnonzero(sampled)
        sources.append(places[at - 1])
        targets.append(ids[number][at])
    return Packed(
        ids=torch.from_numpy(np.concatenate(forest.ids)),
        positions=torch.from_numpy(
            np.concatenate([np.arange(run.depth, run.depth + run.end - run.start) for run in forest.runs])
        ),
        runs=tuple(forest.runs),
        sources=torch.from_numpy(np.concatenate(sources)),
        targets=torch.from_numpy(np.concatenate(targets)),
        total=sum(map(len, ids)),
    )


def packed_size(rows: Sequence[Sequence[Segment]], *, least_shared: int = LEAST_SHARED) -> int:
    """The number of tokens that `pack` would compute."""
    runs = _Forest([_ids(row) for row in rows], least_shared).runs
    return runs[-1].end if runs else 0


def added_size(row: Sequence[Segment], before: Sequence[Segment] | None) -> int:
    """The number of tokens that a row adds to a packed one in which it follows `before`."""
    ids = _ids(row)
    shared = 0 if before is None else _common(ids, _ids(before))
    return len(ids) - (shared if shared >= LEAST_SHARED else 0)


def _ids(row: Sequence[Segment]) -> Ids:
    return np.fromiter((token for segment in row for token in segment.ids), dtype=np.int64)


class _Forest:
    """Grows runs from rows in the order of their tokens, so that rows with a common beginning are neighbours."""

    def __init__(self, rows: Sequence[Ids], least_shared: int) -> None:
        self._rows = rows
        self._least = least_shared
        self.runs: list[TokenRun] = []
        self.ids: list[Ids] = []
        self._chains: list[list[int]] = [[] for _ in rows]
        order = sorted(range(len(rows)), key=lambda number: rows[number].tolist())
        self._grow(order, 0, ())

    def places(self, number: int) -> Ids:
        """The place of each token of a row in the packed one."""
        runs = [self.runs[each] for each in self._chains[number]]
        return np.concatenate([np.arange(run.start, run.end) for run in runs])

    def _grow(self, order: Sequence[int], depth: int, above: tuple[int, ...]) -> None:
        for alike in self._alike(order, depth):
            shared = _common(self._rows[alike[0]], self._rows[alike[-1]])
            if len(alike) > 1 and shared - depth >= self._least:
                here = self._add(self._rows[alike[0]][depth:shared], depth, above, alike)
                self._grow(alike, shared, (*above, here))
            else:
                for number in alike:
                    self._add(self._rows[number][depth:], depth, above, [number])

    def _alike(self, order: Sequence[int], depth: int) -> Iterator[list[int]]:
        """Neighbours with the same next token; rows that are over here are left out."""
        alike: list[int] = []
        for number in order:
            row = self._rows[number]
            if len(row) == depth:
                continue
            if alike and self._rows[alike[0]][depth] != row[depth]:
                yield alike
                alike = []
            alike.append(number)
        if alike:
            yield alike

    def _add(self, ids: Ids, depth: int, above: tuple[int, ...], of: Sequence[int]) -> int:
        start = self.runs[-1].end if self.runs else 0
        self.runs.append(TokenRun(start, start + len(ids), depth, above))
        self.ids.append(ids)
        for number in of:
            self._chains[number].append(len(self.runs) - 1)
        return len(self.runs) - 1


def _common(one: Ids, other: Ids) -> int:
    length = min(len(one), len(other))
    differs = np.flatnonzero(one[:length] != other[:length])
    return int(differs[0]) if len(differs) else length
