"""What forty labelled turns do for a collection that the reader never saw: the practice cases of domains kept aside.

Each domain is a collection. Forty of its turns, drawn five times, lend the cases their sentences and fit the reader's
calibration; the others are read before, with the sentences alone, and with the calibration.

    .venv/bin/python -m benchmarks.own_calibration
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace

from personas.case.compiled import with_examples
from personas.reading.reader import LocalReader
from reward_server.fitting.reader.dataset import ReaderRow, after_opening
from reward_server.fitting.reader.evaluate import TurnPrediction, measured, predict, table
from reward_server.fitting.reader.own import fit_own
from reward_server.reader.build import local_reader
from scenarios.practice import PracticeCase, load_practice
from scenarios.turns import BACKGROUND_KIND, examples_of

LABELS, DRAWS = 40, 5


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    reader = local_reader()
    cases = [case for case in load_practice() if case.held_out]
    parts: dict[str, list[TurnPrediction]] = {"before": [], "labels as examples": [], "calibrated": []}
    for domain in sorted({case.domain for case in cases}):
        own = [case for case in cases if case.domain == domain]
        for draw in range(DRAWS):
            for name, found in _read(reader, own, draw).items():
                parts[name] += found
    print(table({name: measured(found) for name, found in parts.items()}))


def _read(reader: LocalReader, cases: list[PracticeCase], draw: int) -> dict[str, list[TurnPrediction]]:
    plain = {case.key: case.compiled() for case in cases}
    rows = [ReaderRow(*case.key, turn) for case in cases for turn in case.turns if turn.kind != BACKGROUND_KIND]
    random.Random(draw).shuffle(rows)
    labelled, others = rows[:LABELS], after_opening(plain, rows[LABELS:])
    fit = fit_own(reader, labelled, plain)
    lent = {
        key: with_examples(case, examples_of([row.turn for row in labelled if row.key == key]))
        for key, case in plain.items()
    }
    own = {key: replace(case, calibration=fit.calibration) for key, case in lent.items()}
    return {
        "before": predict(plain, reader, others),
        "labels as examples": predict(lent, reader, others),
        "calibrated": predict(own, reader, others),
    }


if __name__ == "__main__":
    main()
