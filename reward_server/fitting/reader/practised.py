"""Measures a reader on the practice cases of the domains kept aside: how well a case that it never saw is understood.

The turns of a practice case are written far from its author's examples, so this is the hard end. Turns without a
`before` are read after the persona's opening. Commitments are told apart by what they do: a breach has to be so clear
that a cap may rest on it, a credit has to be heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from personas.case.compiled import CompiledCase
from personas.hearing.background import aside_of, may_recall
from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.reading.reader import Reader
from reward_server.fitting.reader.dataset import BACKGROUND_KIND, ReaderRow, after_opening
from reward_server.fitting.reader.evaluate import Share, TurnPrediction, measured, predict
from scenarios.practice import PracticeCase

Parts = dict[str, dict[str, Share]]
ALL = "all"


def practised(reader: Reader, cases: Iterable[PracticeCase]) -> Parts:
    """The measures of each domain, and of all under `all`; blocking."""
    chosen = list(cases)
    compiled = {case.key: case.compiled() for case in chosen}
    costs = {case.key: case.costs for case in chosen}
    rows = [ReaderRow(*case.key, turn) for case in chosen for turn in case.turns]
    follows = {(row.key, row.turn.number) for row in rows if row.turn.line}
    opened = after_opening(compiled, rows)
    predictions = predict(compiled, reader, [row for row in opened if row.turn.kind != BACKGROUND_KIND])
    asides = [(row, _recalls(compiled[row.key], row, reader)) for row in opened if row.turn.kind == BACKGROUND_KIND]

    def of(domains: frozenset[str]) -> dict[str, Share]:
        own = [prediction for prediction in predictions if prediction.row.collection in domains]
        used = Counter(hit for row, hit in asides if row.collection in domains)
        return {
            **_asked(own, follows),
            "own background used": Share(used[True], used.total()),
            **_committed(own, costs),
        }

    names = sorted({case.domain for case in chosen})
    return {**{name: of(frozenset({name})) for name in names}, ALL: of(frozenset(names))}


def _asked(predictions: Sequence[TurnPrediction], follows: set[tuple[tuple[str, str], int]]) -> dict[str, Share]:
    shares = measured(predictions)
    names = ("specific understood", "specific wrong", "double, per fact", "open apt", "foreign opened")
    rest = ("social or summary opened", "off topic, wrongly")
    behind = [prediction for prediction in predictions if (prediction.row.key, prediction.row.turn.number) in follows]
    follow = measured(behind)["specific understood"]
    return {
        **{name: shares[name] for name in names},
        "follow-up understood": follow,
        **{name: shares[name] for name in rest},
    }


def _committed(
    predictions: Iterable[TurnPrediction], costs: Mapping[tuple[str, str], frozenset[str]]
) -> dict[str, Share]:
    """Breaches and credit, said and nearly said."""
    hits: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for prediction in predictions:
        for name, hit in _outcomes(prediction, costs[prediction.row.key]):
            hits[name] += hit
            of[name] += 1
    names = ("breach fires", "near breach fires", "other turn fires a breach", "credit heard", "near credit taken")
    return {name: Share(hits[name], of[name]) for name in names}


def _outcomes(prediction: TurnPrediction, costs: frozenset[str]) -> Iterator[tuple[str, bool]]:
    turn = prediction.row.turn
    for name in turn.commits:
        breach = name in costs
        yield ("breach fires", name in prediction.binding) if breach else ("credit heard", name in prediction.commits)
    if turn.near is not None:
        breach = turn.near in costs
        yield (
            ("near breach fires", turn.near in prediction.binding)
            if breach
            else ("near credit taken", turn.near in prediction.commits)
        )
    if turn.kind != "near_commit":
        yield "other turn fires a breach", bool((prediction.binding & costs) - set(turn.commits))


def _recalls(case: CompiledCase, row: ReaderRow, reader: Reader) -> bool:
    """True if the persona answers a turn with the entry of its background that the label names."""
    line, text = row.turn.line, row.turn.turn
    state = PersonaState(said=dict.fromkeys(case.volunteered_in(line), 0))
    hearing = hear(case, state, AgentTurn(text), reader.read(case, [(line, text)])[0])
    recallable = may_recall(hearing)
    aside = aside_of(case, state, hearing, recallable, reader.beside(case, line, recallable))
    used = {*(entry.id for entry in aside.recalled), *(entry.id for entry in aside.nearest.values())}
    return bool(used & set(row.turn.asks))


def practice_table(parts: Mapping[str, Mapping[str, Share]]) -> str:
    """A Markdown table, a row per measure and a column per domain; 95 % intervals for all."""
    names = list(parts)
    lines = [f"| | {' | '.join(names)} | 95 % interval |", f"|---|{'---|' * len(names)}---|"]
    for measure, total in parts[ALL].items():
        shares = [parts[name][measure] for name in names]
        cells = " | ".join(f"{share.value:.0%}" if share.of else "-" for share in shares)
        low, high = total.interval
        lines.append(f"| {measure} ({total.of}) | {cells} | {low:.0%}-{high:.0%} |")
    return "\n".join(lines)
