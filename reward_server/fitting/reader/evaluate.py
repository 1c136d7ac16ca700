"""Measures a reader on labelled turns: what a persona would make of each, through the same hearing as play.

Every turn is heard alone, in a fresh conversation after the persona's line before it, with the facts marked as told
that the label names. Sources of the measures: understanding of specific and double questions, aptness of answers to
open invitations, facts opened by foreign questions, commitments heard and near misses taken for one.

What costs the agent and what earns it is measured apart: a breach has to be so clear that a cap may rest on it, a
credit has to be heard. So are follow-ups, and questions that the persona answers from its background.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from personas.case.compiled import CompiledCase, later_id
from personas.hearing.background import aside_of, may_recall
from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn, Hearing
from personas.reading.acts import Reading
from personas.reading.reader import Reader
from reward_server.fitting.reader.dataset import Cases, ReaderRow, case_of
from reward_server.reader.build import local_reader
from scenarios.library import load_library
from scenarios.turns import BACKGROUND_KIND, LabelledTurn

AT_ONCE = 64
Z = 1.96


@dataclass(frozen=True, slots=True)
class TurnPrediction:
    """The persona's reading of one labelled turn."""

    row: ReaderRow
    asks: tuple[str, ...]
    """Topics it answers, whether their gates are open or not."""
    commits: tuple[str, ...]
    off_topic: bool
    acts: tuple[str, ...]
    told: frozenset[str] = frozenset()
    """What the persona had said before the turn."""
    binding: frozenset[str] = frozenset()
    """The commitments it makes so clearly that they may cost the agent."""
    costs: frozenset[str] = frozenset()
    """The commitments of its case that cost the agent something."""
    recalled: frozenset[str] = frozenset()
    """What of the background the persona answers with; empty if it was not asked."""

    def to_json(self) -> dict[str, Any]:
        """A row of `--predictions`."""
        return {
            "collection": self.row.collection,
            "scenario": self.row.scenario,
            "turn": self.row.turn.turn,
            "asks": list(self.asks),
            "commits": list(self.commits),
            "off_topic": self.off_topic,
            "acts": list(self.acts),
        }


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share; 0 of nothing."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson score interval at 95 % (Wilson 1927)."""
        if not self.of:
            return 0.0, 1.0
        n, p = self.of, self.value
        centre, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        return max(0.0, (centre - half) / (1 + Z * Z / n)), min(1.0, (centre + half) / (1 + Z * Z / n))


MEASURES = (
    "specific understood",
    "specific wrong",
    "double, per fact",
    "open apt",
    "foreign opened",
    "social or summary opened",
    "commitment heard",
    "near miss taken for it",
    "off topic, wrongly",
)
APART = (
    "follow-up understood",
    "own background used",
    "breach fires",
    "near breach fires",
    "other turn fires a breach",
    "credit heard",
    "near credit taken",
)
"""What is shown besides, if there are turns for it."""


def predict(cases: Cases, reader: Reader, rows: Sequence[ReaderRow]) -> list[TurnPrediction]:
    """One prediction per row, in order; blocking."""
    predictions: dict[int, TurnPrediction] = {}
    by_case: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        by_case.setdefault(row.key, []).append(number)
    for numbers in by_case.values():
        case = case_of(cases, rows[numbers[0]])
        for start in range(0, len(numbers), AT_ONCE):
            part = numbers[start : start + AT_ONCE]
            turns = [(rows[number].turn.line, rows[number].turn.turn) for number in part]
            for number, reading in zip(part, reader.read(case, turns), strict=True):
                aside = reader if rows[number].turn.kind == BACKGROUND_KIND else None
                predictions[number] = prediction_of(case, rows[number], reading, aside)
    return [predictions[number] for number in range(len(rows))]


def predicted_unseen(raw: bytes, rows: Sequence[ReaderRow], scenarios: Path | None = None) -> list[TurnPrediction]:
    """The predictions of a reader that was trained without the collections of these rows; blocking.

    The cases have their authors' examples alone, as a new scenario has.

    Args:
        raw: the bytes of the reader's artefact.
        rows: labelled turns.
        scenarios: folder of collections; by default the packaged one.
    """
    return predict(load_library(scenarios, turns=False), local_reader(raw=raw), rows)


def prediction_of(case: CompiledCase, row: ReaderRow, reading: Reading, beside: Reader | None = None) -> TurnPrediction:
    """What the persona makes of a labelled turn that was read like this.

    Args:
        case: the case that it was read in.
        row: the labelled turn.
        reading: of the turn.
        beside: compares it with the background; without one, nothing is recalled.
    """
    told = {*case.volunteered_in(row.turn.line), *row.turn.told}
    state = PersonaState(said=dict.fromkeys(sorted(told), 0))
    hearing = hear(case, state, AgentTurn(row.turn.turn), reading)
    asks = tuple(asked.topic_id for asked in hearing.asked)
    acts = sorted({act.value for sentence in reading.sentences for act in sentence.acts})
    commits = tuple(made.commitment_id for made in hearing.commitments)
    binding = frozenset(made.commitment_id for made in hearing.commitments if made.binding)
    costs = frozenset(each.id for each in case.commitments if each.costs)
    recalled = frozenset() if beside is None else _recalled(case, state, hearing, row.turn.line, beside)
    return TurnPrediction(row, asks, commits, hearing.off_topic, tuple(acts), frozenset(told), binding, costs, recalled)


def _recalled(case: CompiledCase, state: PersonaState, hearing: Hearing, line: str, reader: Reader) -> frozenset[str]:
    """The entries of the background that the persona may answer a turn with, those said later under the same name."""
    recallable = may_recall(hearing)
    aside = aside_of(case, state, hearing, recallable, reader.beside(case, line, recallable))
    used = [entry.id for entry in (*aside.recalled, *aside.nearest.values())]
    return frozenset({*used, *(name for name in case.asides if later_id(name) in used)})


def measured(predictions: Iterable[TurnPrediction]) -> dict[str, Share]:
    """The share of each measure of `MEASURES`, by name."""
    read = [each for each in predictions if each.row.turn.kind != BACKGROUND_KIND]
    return _shares(MEASURES, (count for each in read for count in _counts(each, each.row.turn)))


def measured_apart(predictions: Iterable[TurnPrediction]) -> dict[str, Share]:
    """The share of each measure of `APART`, by name."""
    return _shares(APART, ((name, int(hit), 1) for each in predictions for name, hit in _outcomes(each)))


def all_measured(predictions: Sequence[TurnPrediction]) -> dict[str, Share]:
    """The share of each measure, by name."""
    return {**measured(predictions), **measured_apart(predictions)}


def _shares(names: Sequence[str], counts: Iterable[tuple[str, int, int]]) -> dict[str, Share]:
    hits: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for name, hit, count in counts:
        hits[name] += hit
        of[name] += count
    return {name: Share(hits[name], of[name]) for name in names}


def _outcomes(prediction: TurnPrediction) -> Iterator[tuple[str, bool]]:
    """What a turn counts for among the measures of `APART`, and whether it was so."""
    turn, costs = prediction.row.turn, prediction.costs
    if turn.kind == BACKGROUND_KIND:
        yield "own background used", bool(prediction.recalled & set(turn.asks))
        return
    if turn.kind == "specific" and turn.line and not prediction.row.opened:
        yield "follow-up understood", bool(set(prediction.asks) & set(turn.asks))
    for name in turn.commits:
        breach = name in costs
        yield ("breach fires", name in prediction.binding) if breach else ("credit heard", name in prediction.commits)
    fired = (prediction.binding & costs) - set(turn.commits)
    if turn.kind != "near_commit":
        yield "other turn fires a breach", bool(fired)
    elif turn.near is None or turn.near in costs:
        yield "near breach fires", bool(fired) if turn.near is None else turn.near in fired
    else:
        yield "near credit taken", turn.near in prediction.commits


def _counts(prediction: TurnPrediction, turn: LabelledTurn) -> Iterable[tuple[str, int, int]]:
    right = set(prediction.asks) & set(turn.asks)
    yield "off topic, wrongly", int(prediction.off_topic and turn.kind not in ("foreign", "social")), 1
    if turn.kind == "specific":
        yield "specific understood", int(bool(right)), 1
        yield "specific wrong", int(bool(prediction.asks) and not right), 1
    elif turn.kind == "double":
        yield "double, per fact", len(right), len(turn.asks)
    elif turn.kind == "open":
        # Where everything apt was said before, going on with the story is as good as saying it again.
        if not (turn.asks and prediction.told.issuperset(turn.asks)):
            yield "open apt", int(bool(right)), 1
    elif turn.kind == "foreign":
        yield "foreign opened", int(bool(prediction.asks)), 1
    elif turn.kind in ("social", "summary"):
        yield "social or summary opened", int(bool(prediction.asks)), 1
    elif turn.kind == "near_commit":
        yield "near miss taken for it", int(bool(set(prediction.commits) - set(turn.commits))), 1
    if turn.kind == "commit":
        yield "commitment heard", int(set(turn.commits) <= set(prediction.commits)), 1


GOOD = frozenset({"specific understood", "double, per fact", "open apt", "commitment heard"})
"""The measures of which more is better; of the others less is."""


def is_right(prediction: TurnPrediction) -> bool:
    """True if all that the turn says was understood, and nothing that it does not say."""
    return all(hit == (of if name in GOOD else 0) for name, hit, of in _counts(prediction, prediction.row.turn))


def by_collection(predictions: Sequence[TurnPrediction]) -> Mapping[str, dict[str, Share]]:
    """The measures of each collection, and of all under `all`."""
    names = sorted({prediction.row.collection for prediction in predictions})
    parts = {name: all_measured([p for p in predictions if p.row.collection == name]) for name in names}
    return {**parts, "all": all_measured(predictions)}


def table(parts: Mapping[str, Mapping[str, Share]]) -> str:
    """A Markdown table, a row per measure that has turns and a column per collection; 95 % intervals for the last."""
    names = list(parts)
    lines = [f"| | {' | '.join(names)} | 95 % interval |", f"|---|{'---|' * len(names)}---|"]
    for measure in parts[names[-1]]:
        shares = [parts[name][measure] for name in names]
        if not any(share.of for share in shares):
            continue
        low, high = shares[-1].interval
        cells = " | ".join(f"{share.value:.0%}" if share.of else "-" for share in shares)
        between = f"{low:.0%}-{high:.0%}" if shares[-1].of else "-"
        lines.append(f"| {measure} ({shares[-1].of}) | {cells} | {between} |")
    return "\n".join(lines)
