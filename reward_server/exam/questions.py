"""Understanding of agents by a persona, measured on the labelled turns that are kept aside.

Only hearing is looked at: no gate, no reward. A scenario without labelled turns is measured on the foreign questions
of its collection alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from personas.hearing.hear import BY_NAME
from personas.reading.reader import Reader
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.evaluate import MEASURES, Share, TurnPrediction, measured, predict
from scenarios.library import Library, SealedScenario
from scenarios.turns import BACKGROUND_KIND, LabelledTurn


@dataclass(frozen=True)
class Understanding:
    """The measure of how the turns of one scenario were understood."""

    shares: dict[str, Share]
    """Measure -> its share; the names are `reward_server.fitting.reader.evaluate.MEASURES`."""
    misses: tuple[str, ...]
    """Turns that were heard as something else than their labels say. For authors only."""


def understanding(
    library: Library, scenario: SealedScenario, turns: Sequence[LabelledTurn], reader: Reader
) -> Understanding:
    """Hears every turn that is kept aside, every foreign question, and what the background answers, once."""
    foreign = [LabelledTurn(question, (), (), "foreign") for question in scenario.foreign]
    slug = scenario.card.slug
    rows = [
        ReaderRow(scenario.collection, slug, turn)
        for turn in (*(each for each in turns if each.kept_aside and each.kind != BACKGROUND_KIND), *foreign)
    ]
    found = predict(library, reader, rows)
    misses = (miss for each in found if (miss := _miss(each)) is not None)
    return Understanding(measured(found), (*misses, *_taken_for_topics(scenario, reader)))


def _taken_for_topics(scenario: SealedScenario, reader: Reader) -> Iterator[str]:
    """The questions of the background that clearly ask for a topic: in other words, they would be answered with it."""
    asks = [(entry.id, ask) for entry in scenario.case.own_background for ask in entry.examples]
    for (name, ask), reading in zip(asks, reader.read(scenario.case, [("", ask) for _, ask in asks]), strict=True):
        heard = {each.id for sentence in reading.readable for each in sentence.topics if each.confidence >= BY_NAME}
        if heard:
            yield f"stands in the background as `{name}`, heard as `{min(heard)}`: {ask}"


def _miss(found: TurnPrediction) -> str | None:
    turn = found.row.turn
    heard = ", ".join(f"`{name}`" for name in found.asks) or "nothing"
    meant = ", ".join(f"`{name}`" for name in turn.asks) or "nothing"
    right = set(found.asks) & set(turn.asks)
    if (turn.kind in ("specific", "open") and not right) or (turn.kind == "double" and right < set(turn.asks)):
        return f"meant {meant}, heard as {heard}: {turn.turn}"
    if turn.kind == "foreign" and found.asks:
        return f"about nothing in the case, heard as {heard}: {turn.turn}"
    if missed := set(turn.commits) - set(found.commits):
        return f"commits to `{min(missed)}`, not heard: {turn.turn}"
    if turn.kind == "near_commit" and (extra := set(found.commits) - set(turn.commits)):
        return f"heard as the commitment `{min(extra)}`, which it only resembles: {turn.turn}"
    return None


__all__ = ["MEASURES", "Share", "Understanding", "understanding"]
