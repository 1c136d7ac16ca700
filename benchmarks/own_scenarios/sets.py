"""The turns that are read: those of two scenarios of one's own, and those of the practice cases kept aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from personas.case.compiled import CompiledCase
from reward_server.fitting.reader.dataset import ReaderRow, turns_of_file
from scenarios.library import costly_commitments, load_library
from scenarios.practice import load_practice
from scenarios.turns import BACKGROUND_KIND

COLLECTIONS = Path(__file__).parent / "collections"
TURNS = Path(__file__).parent / "turns"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TurnSet:
    """Labelled turns, the cases they are read in, and which of their commitments cost the agent."""

    name: str
    rows: Sequence[ReaderRow]
    cases: Mapping[Key, CompiledCase]
    costs: Mapping[Key, frozenset[str]]


def own_sets() -> list[TurnSet]:
    """One set per scenario of one's own; its case has its author's examples alone."""
    library = load_library(COLLECTIONS, turns=False)
    sets = []
    for path in sorted(TURNS.glob("*.jsonl")):
        rows = turns_of_file(path, library)
        scenario = library.vault.open(*rows[0].key)
        cases = {rows[0].key: scenario.case}
        costs = {rows[0].key: costly_commitments(scenario.secrets.rubric.criteria)}
        sets.append(TurnSet("/".join(rows[0].key), rows, cases, costs))
    return sets


def practice_set() -> TurnSet:
    """The practice cases of the domains kept aside."""
    cases = [case for case in load_practice() if case.held_out]
    return TurnSet(
        "practice cases kept aside",
        [ReaderRow(*case.key, turn) for case in cases for turn in case.turns if turn.kind != BACKGROUND_KIND],
        {case.key: case.compiled() for case in cases},
        {case.key: case.costs for case in cases},
    )
