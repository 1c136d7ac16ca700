"""What is counted of the turns of a set: understanding, commitments heard, and whether a cap or a deduction falls due.

A commitment that costs the agent counts only if the persona binds the agent to it; one that earns something counts if
it is heard at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.evaluate import Share, TurnPrediction

MEASURES = (
    "specific questions understood",
    "specific questions taken for others",
    "follow-ups understood",
    "facts of double questions",
    "foreign questions that open a fact",
    "promises that earn, heard",
    "near misses taken for one",
    "breaches that cost",
    "near misses that cost",
    "other turns that cost",
)
Counts = Iterator[tuple[str, int, int]]


def measured(
    rows: Sequence[ReaderRow], found: Sequence[TurnPrediction], costs: Mapping[tuple[str, str], frozenset[str]]
) -> dict[str, Share]:
    """The share of each measure.

    Args:
        rows: the turns as labelled; one that names a line before it is a follow-up.
        found: what was made of each.
        costs: by case, the commitments that cost the agent.
    """
    hits: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for row, prediction in zip(rows, found, strict=True):
        for name, hit, count in (*_asked(row, prediction), *_committed(row, prediction, costs[row.key])):
            hits[name] += hit
            of[name] += count
    return {name: Share(hits[name], of[name]) for name in MEASURES}


def added(parts: Iterable[Mapping[str, Share]]) -> dict[str, Share]:
    """The shares of several parts as one."""
    listed = list(parts)
    return {
        name: Share(sum(part[name].hits for part in listed), sum(part[name].of for part in listed)) for name in MEASURES
    }


def _asked(row: ReaderRow, prediction: TurnPrediction) -> Counts:
    turn = row.turn
    right = set(prediction.asks) & set(turn.asks)
    if turn.kind == "specific" and turn.line:
        yield "follow-ups understood", bool(right), 1
    elif turn.kind == "specific":
        yield "specific questions understood", bool(right), 1
        yield "specific questions taken for others", bool(prediction.asks) and not right, 1
    elif turn.kind == "double":
        yield "facts of double questions", len(right), len(turn.asks)
    elif turn.kind == "foreign":
        yield "foreign questions that open a fact", bool(prediction.asks), 1


def _committed(row: ReaderRow, prediction: TurnPrediction, costs: frozenset[str]) -> Counts:
    said = set(row.turn.commits)
    for name in row.turn.commits:
        if name in costs:
            yield "breaches that cost", name in prediction.binding, 1
        else:
            yield "promises that earn, heard", name in prediction.commits, 1
    wrongly = bool((prediction.binding & costs) - said)
    if row.turn.kind == "near_commit":
        yield "near misses taken for one", bool(set(prediction.commits) - costs - said), 1
        yield "near misses that cost", wrongly, 1
    else:
        yield "other turns that cost", wrongly, 1
