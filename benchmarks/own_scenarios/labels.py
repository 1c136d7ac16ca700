"""What some labelled turns do for the others of the same scenario: without them, as examples, and calibrated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.own_scenarios.measures import added, measured
from benchmarks.own_scenarios.sets import TurnSet
from personas.case.compiled import CompiledCase, with_examples
from personas.reading.reader import LocalReader
from reward_server.fitting.reader.dataset import ReaderRow, after_opening
from reward_server.fitting.reader.evaluate import Share, predict
from reward_server.fitting.reader.own import fit_own
from scenarios.turns import examples_of

SEED, DRAWS = 7, 3
WAYS = ("without", "as examples", "calibrated")


def helped(reader: LocalReader, given: TurnSet, labels: int, draws: int = DRAWS) -> dict[str, dict[str, Share]]:
    """The shares among the turns without labels, by what the labels are used for, of all draws together; blocking."""
    draw = random.Random(SEED)
    parts: dict[str, list[dict[str, Share]]] = {way: [] for way in WAYS}
    for _ in range(draws):
        mixed = draw.sample(given.rows, len(given.rows))
        others = mixed[labels:]
        for way, cases in _ways(reader, given, mixed[:labels]):
            found = predict(cases, reader, after_opening(cases, others))
            parts[way].append(measured(others, found, given.costs))
    return {way: added(part) for way, part in parts.items()}


def _ways(
    reader: LocalReader, given: TurnSet, labelled: list[ReaderRow]
) -> Iterator[tuple[str, dict[tuple[str, str], CompiledCase]]]:
    fit = fit_own(reader, labelled, given.cases)
    lent = {
        key: with_examples(case, examples_of([row.turn for row in labelled if row.key == key]))
        for key, case in given.cases.items()
    }
    calibrated = {key: replace(case, calibration=fit.calibration) for key, case in lent.items()}
    yield from zip(WAYS, (dict(given.cases), lent, calibrated), strict=True)
