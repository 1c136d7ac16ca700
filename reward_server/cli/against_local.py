"""Reads a small fixed sample of labelled turns with the configured decision model and with the local reader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward_server.fitting.reader.dataset import ReaderRow
    from reward_server.settings import Settings

OF_A_CASE = 6
"""Turns of one case of each collection: enough to see a model that reads far worse, and few enough to pay for."""


@dataclass(frozen=True, slots=True)
class SampleReading:
    """How a decision model reads beside the local reader."""

    is_worse: bool
    """Beyond chance: the whole 95 % interval of the difference is below 0."""
    told: str


def read_against_local(settings: Settings) -> SampleReading:
    """The turns that each understands, and the difference with its interval; the model is asked, and costs."""
    import numpy as np

    from reward_server.cli.reader import asked
    from reward_server.fitting.reader.dataset import after_opening, packaged_turns
    from reward_server.fitting.reader.evaluate import is_right, predict
    from reward_server.reward_models.reliability import bootstrap
    from reward_server.server.engine import load_reader, load_scenarios
    from scenarios.lint import COLLECTIONS

    library = load_scenarios(None, settings.libraries)
    rows = after_opening(library, _sample(packaged_turns(COLLECTIONS, library)))
    local = load_reader(settings)
    alone = np.array([is_right(each) for each in predict(library, local, rows)], dtype=np.float64)
    found, used = asyncio.run(asked(settings, local, lambda reader: predict(library, reader, rows)))
    asking = np.array([is_right(each) for each in found], dtype=np.float64)
    gain = bootstrap(lambda chosen: float((asking - alone)[chosen].mean()), [str(n) for n in range(len(rows))])
    told = f"of {len(rows)} turns it understands {asking.sum():.0f}, the local reader {alone.sum():.0f}"
    told += f" (difference {gain.value:+.0%}, 95 % {gain.low:+.0%} to {gain.high:+.0%}); {used}"
    return SampleReading(gain.high < 0, told)


def _sample(rows: Sequence[ReaderRow]) -> list[ReaderRow]:
    """Held-out turns of the first case of each collection, evenly spread."""
    return [row for _, own in _by_collection(rows) for row in own[:: -(-len(own) // OF_A_CASE)]]


def _by_collection(rows: Sequence[ReaderRow]) -> Iterator[tuple[str, list[ReaderRow]]]:
    first: dict[str, str] = {}
    for row in rows:
        first.setdefault(row.collection, row.scenario)
    for collection, scenario in first.items():
        yield collection, [row for row in rows if row.key == (collection, scenario) and row.turn.kept_aside]
