"""Reads the turns of a set one at a time, as a persona in play does, and takes the CPU time of reading."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.own_scenarios.measures import measured
from benchmarks.own_scenarios.sets import TurnSet
from personas.reading.reader import LocalReader
from reward_server.fitting.reader.dataset import ReaderRow, after_opening
from reward_server.fitting.reader.evaluate import Share, prediction_of


@dataclass(frozen=True, slots=True)
class SetRead:
    """What was made of the turns of a set."""

    shares: dict[str, Share]
    ms_a_turn: float
    """CPU time of reading, on average."""


def read(reader: LocalReader, given: TurnSet, rows: Sequence[ReaderRow]) -> SetRead:
    """Some turns of a set, each after its persona's opening if it names no line before it; blocking."""
    for key in dict.fromkeys(row.key for row in rows):
        reader.prepare(given.cases[key])
    spent_s, found = 0.0, []
    for row in after_opening(given.cases, rows):
        case, begun_s = given.cases[row.key], time.thread_time()
        [reading] = reader.read(case, [(row.turn.line, row.turn.turn)])
        spent_s += time.thread_time() - begun_s
        found.append(prediction_of(case, row, reading))
    return SetRead(measured(rows, found, given.costs), 1e3 * spent_s / max(1, len(rows)))
