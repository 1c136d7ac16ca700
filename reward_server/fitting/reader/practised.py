"""Measures a reader on the practice cases of the domains kept aside: how well a case that it never saw is understood.

The turns of a practice case are written far from its author's examples, so this is the hard end. Turns without a
`before` are read after the persona's opening. Commitments are told apart by what they do: a breach has to be so clear
that a cap may rest on it, a credit has to be heard.
"""

from __future__ import annotations

from collections.abc import Iterable

from personas.reading.reader import Reader
from reward_server.fitting.reader.dataset import ReaderRow, after_opening
from reward_server.fitting.reader.evaluate import APART, MEASURES, Share, all_measured, predict
from scenarios.practice import PracticeCase

Parts = dict[str, dict[str, Share]]
ALL = "all"
_TOGETHER = ("commitment heard", "near miss taken for it")
NAMES = tuple(name for name in (*MEASURES, *APART) if name not in _TOGETHER)
"""Commitments are told apart by whether they cost."""


def practised(reader: Reader, cases: Iterable[PracticeCase]) -> Parts:
    """The measures of each domain, and of all under `all`; blocking."""
    chosen = list(cases)
    compiled = {case.key: case.compiled() for case in chosen}
    rows = [ReaderRow(*case.key, turn) for case in chosen for turn in case.turns]
    predictions = predict(compiled, reader, after_opening(compiled, rows))

    def of(domains: frozenset[str]) -> dict[str, Share]:
        shares = all_measured([each for each in predictions if each.row.collection in domains])
        return {name: shares[name] for name in NAMES}

    names = sorted({case.domain for case in chosen})
    return {**{name: of(frozenset({name})) for name in names}, ALL: of(frozenset(names))}
