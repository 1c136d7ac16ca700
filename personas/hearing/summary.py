"""Finds numbers that a summary gets wrong though the persona has told them: "so that was the 14th?", "five a day?"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from personas.case.compiled import CompiledCase
from personas.hearing.amounts import DAY, WEEKDAY, counted_in
from personas.hearing.state import PersonaState
from personas.reading.acts import Act, Sentence
from personas.text.questions import QuestionForm, form_of

__all__ = ["misquoted", "named_in_offers"]


def misquoted(case: CompiledCase, state: PersonaState, spoken: Iterable[Sentence]) -> str | None:
    """The topic that a summary tells with another number than the persona, where no offer named that number.

    Only a unit that a single topic told so far has can be misquoted: "three days" may be anybody's.
    """
    told: dict[str, dict[str, set[float]]] = {}
    for name in state.said:
        for wording in case.by_id[name].says:
            for value, unit in counted_in(wording):
                told.setdefault(unit, {}).setdefault(name, set()).add(value)
    offered = set(state.conversation.terms)
    for sentence in spoken:
        checks = sentence.does(Act.RECAP, Act.CHECK) or form_of(sentence.text) is QuestionForm.POLAR
        if sentence.does(Act.PROPOSE) or not checks:
            continue
        named = counted_in(sentence.text)
        for value, unit in named:
            if unit != DAY and not sentence.does(Act.RECAP):
                # "Is it all right if I ring in three days?" sums up nothing.
                continue
            topics = told.get(unit, {})
            if len(topics) == 1 and f"{value:g} {unit}" not in offered:
                [(name, values)] = topics.items()
                worked_out = _sums(values) if unit != WEEKDAY else set[float]()
                right = any(other in values and counted == unit for other, counted in named)
                if not right and value not in worked_out:
                    return name
    return None


def _sums(values: set[float]) -> set[float]:
    """What somebody may have worked out from numbers that were told."""
    return {a + b for a in values for b in values} | {abs(a - b) for a in values for b in values}


def named_in_offers(spoken: Iterable[Sentence]) -> Iterator[str]:
    """The figures that the agent offers or settles, by number and unit."""
    for sentence in spoken:
        if sentence.does(Act.PROPOSE):
            yield from (f"{value:g} {unit}" for value, unit in counted_in(sentence.text))
