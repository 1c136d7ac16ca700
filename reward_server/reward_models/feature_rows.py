"""Rows of features that are read when they are asked for: those of a large data set would not go into memory.

Rows are a matrix, a file of rows, or a view of either: some of them, some with columns at 0, several after each other.
All of them give the same numbers; few enough rows become a matrix, which is faster.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from reward_server.errors import Unavailable
from reward_server.folders import make_private

Matrix = NDArray[np.float32]
Places = NDArray[np.intp]

IN_MEMORY = 16_000_000
"""Bytes of rows that are held as a matrix."""
BLOCK_ROWS = 512
"""So many rows are held in double precision at once."""


class FeatureRows(Protocol):
    """Rows that are read by slices or places; a matrix is such, too."""

    def __len__(self) -> int:
        """The number of rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __getitem__(self, which: slice | Places, /) -> Matrix:
        """These rows, as a matrix."""


class RowFile:
    """Rows in a file without a name, which goes with the process. Read, not mapped: mapped pages would count as its
    memory, and a control group would have to take them back."""

    def __init__(self, width: int, folder: Path | None = None) -> None:
        """Args: folder: on a disk with room; by default, and where it cannot be written, that of temporary files."""
        self._file = _unnamed(folder)
        weakref.finalize(self, self._file.close)
        self._width = width
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self._count, self._width

    def append(self, rows: Matrix) -> range:
        """Write rows behind the others; returns their places.

        Raises:
            Unavailable: the disk is full; there may be room later.
        """
        if rows.shape[1:] != (self._width,):
            raise ValueError(f"rows of {rows.shape[1:]} in a file of width {self._width}")
        try:
            # Not the end: an attempt that failed may have written a part.
            self._file.seek(self._count * self._width * 4)
            self._file.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
            self._file.flush()
        except OSError as error:
            raise Unavailable(f"features cannot be kept on disk: {error.strerror}") from error
        places = range(self._count, self._count + len(rows))
        self._count = places.stop
        return places

    def __getitem__(self, which: slice | Places, /) -> Matrix:
        places = np.arange(self._count)[which]
        found = np.empty((len(places), self._width), dtype=np.float32)
        # Neighbours are read at once.
        runs = np.flatnonzero(np.diff(places) != 1) + 1
        for start, stop in zip([0, *runs.tolist()], [*runs.tolist(), len(places)], strict=True):
            self._read(found[start:stop], int(places[start]) if stop > start else 0)
        return found

    def _read(self, into: Matrix, place: int) -> None:
        view = into.reshape(-1).view(np.uint8).data
        start = place * self._width * into.itemsize
        done = 0
        while done < len(view):
            count = os.preadv(self._file.fileno(), [view[done:]], start + done)
            if not count:
                raise EOFError("a file of features is shorter than what was written to it")
            done += count


def _unnamed(folder: Path | None) -> IO[bytes]:
    if folder is not None:
        with suppress(OSError):
            make_private(folder)
            return tempfile.TemporaryFile(dir=folder)
    return tempfile.TemporaryFile()


@dataclass(frozen=True)
class SelectedRows:
    """Some rows of others, in an order of their own."""

    rows: FeatureRows
    places: Places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return len(self.places), self.rows.shape[1]

    def __getitem__(self, which: slice | Places, /) -> Matrix:
        return self.rows[self.places[which]]


@dataclass(frozen=True)
class ZeroedColumns:
    """Rows with some columns at 0."""

    rows: FeatureRows
    columns: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.rows.shape

    def __getitem__(self, which: slice | Places, /) -> Matrix:
        return np.where(self.columns, np.float32(0.0), self.rows[which])


@dataclass(frozen=True)
class ConcatenatedRows:
    """Rows after other rows."""

    first: FeatureRows
    second: FeatureRows

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return len(self), self.first.shape[1]

    def __getitem__(self, which: slice | Places, /) -> Matrix:
        places = np.arange(len(self))[which]
        found = np.empty((len(places), self.shape[1]), dtype=np.float32)
        late = places >= len(self.first)
        found[~late] = self.first[places[~late]]
        found[late] = self.second[places[late] - len(self.first)]
        return found


def picked(rows: FeatureRows, places: Places) -> FeatureRows:
    """These rows of others."""
    return held(SelectedRows(rows, places))


def blanked(rows: FeatureRows, columns: NDArray[np.bool_]) -> FeatureRows:
    """Rows with these columns (width,) at 0."""
    return held(ZeroedColumns(rows, columns))


def joined(first: FeatureRows, second: FeatureRows) -> FeatureRows:
    """Rows with others behind them."""
    return held(ConcatenatedRows(first, second))


def held(rows: FeatureRows) -> FeatureRows:
    """The rows as a matrix where they are few."""
    is_small = rows.shape[0] * rows.shape[1] * np.dtype(np.float32).itemsize <= IN_MEMORY
    return rows[:] if is_small else rows


def blocks(rows: FeatureRows, size: int = BLOCK_ROWS) -> Iterator[Matrix]:
    """The rows in their order, a few at a time."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def gathered(parts: Iterable[Matrix], width: int, folder: Path | None, count: int) -> FeatureRows:
    """`count` rows that come in blocks: a matrix where they are few, else a file in this folder."""
    if count * width * np.dtype(np.float32).itemsize <= IN_MEMORY:
        found = list(parts)
        return np.concatenate(found) if found else np.zeros((0, width), dtype=np.float32)
    file = RowFile(width, folder)
    for part in parts:
        file.append(part)
    return file
