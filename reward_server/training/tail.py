"""Reads what a learner appends to its metrics, and notices where it began the file anew.

A run that goes on from a checkpoint first drops the records of updates that were not kept: the file is another one
then, and is read from its beginning.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from reward_server.store.training_records import MetricRow


@dataclass(frozen=True)
class FilePosition:
    """The place up to which a file was read."""

    file: int | None = None
    """Its number in the file system."""
    offset: int = 0


@dataclass(frozen=True)
class TailRead:
    """The records that were read."""

    rows: list[MetricRow]
    place: FilePosition
    is_whole: bool
    """Whether these are all the records there are, so that no others are of the run."""


class Tail:
    """Of one file, which may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = FilePosition()

    def read(self) -> TailRead | None:
        """Whole lines that were not accepted yet; None where there is nothing new."""
        try:
            with self._path.open("rb") as file:
                there = os.fstat(file.fileno())
                place = self._place
                if place.file != there.st_ino or there.st_size < place.offset:
                    place = FilePosition(there.st_ino)
                file.seek(place.offset)
                text = file.read()
        except OSError:
            return None
        text = text[: text.rfind(b"\n") + 1]
        if not text:
            return None
        rows = [_row(line) for line in text.splitlines()]
        reached = replace(place, offset=place.offset + len(text))
        return TailRead([row for row in rows if row is not None], reached, is_whole=place.offset == 0)

    def accept(self, found: TailRead) -> None:
        """This was stored: go on after it."""
        self._place = found.place


def _row(line: bytes) -> MetricRow | None:
    """A record; None for a line that a crash cut off."""
    try:
        record = json.loads(line)
        return MetricRow(step=int(record["step"]), kind=str(record["kind"]), record=record)
    except (ValueError, KeyError, TypeError):
        return None
