"""Tasks that the agent sets with numbers of its own, and how the persona works them out.

Found by their numbers: a turn that asks, and names every number that a skill of the case needs and no other, sets a
task. What it lacks comes from the numbers before it ("and then another 30 percent off?"). Everything follows from the
case, the agent's words and what the persona has told, so a replayed transcript finds the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from personas.case.compiled import CompiledCase
from personas.case.schema import all_hold
from personas.case.skills import Measure, Skill, Value, named, work_out
from personas.hearing.measures import Measured, measured
from personas.hearing.state import PersonaState
from personas.reading.acts import Act, Sentence, Stance, is_question
from personas.text.numbers import CARDINALS, DENOMINATORS
from personas.text.wording import content_stems, stem

__all__ = ["Task", "given_after", "last_task", "task_of"]

_LOOSE = (Measure.NUMBER, Measure.MONEY)
_REPORTED = (Stance.QUOTED, Stance.PAST, Stance.NEGATED)


@dataclass(frozen=True, slots=True)
class Task:
    """A task as the persona takes it up."""

    skill: str
    quotes: tuple[str, ...]
    """The sentences that set it."""
    lines: tuple[str, ...]
    """What it works out, in the author's words, one of which is said."""
    shows: tuple[str, ...]
    """Facts that go with the result as soon as they may be told."""
    own: bool
    """Whether these are the numbers of the case itself: what the case has an answer to comes first."""
    given: tuple[Measured, ...]


def task_of(case: CompiledCase, state: PersonaState, spoken: Sequence[Sentence]) -> Task | None:
    """The last task of a turn, if it sets one."""
    if not case.skills:
        return None
    for place in range(len(spoken) - 1, -1, -1):
        if not _asks(spoken[place]):
            continue
        for quotes, given in _readings(state, spoken[: place + 1]):
            if (taken := _taken(case, state, quotes, given)) is not None:
                return taken
    return None


def last_task(case: CompiledCase, state: PersonaState) -> Task | None:
    """The task whose result the persona told last, worked out again."""
    told = {skill.id for skill in case.skills} & set(state.conversation.told)
    return _taken(case, state, (), state.conversation.given, told) if told else None


def given_after(state: PersonaState, spoken: Iterable[Sentence], task: Task | None) -> tuple[Measured, ...]:
    """The numbers that what is asked next may rest on."""
    if task is not None:
        return task.given
    figures = tuple(figure for sentence in spoken if not _reports(sentence) for figure in measured(sentence.text))
    return figures or state.conversation.given


def _asks(sentence: Sentence) -> bool:
    return (sentence.does(Act.PROPOSE) or _questions(sentence)) and not sentence.does(Act.RUDE)


def _questions(sentence: Sentence) -> bool:
    return sentence.does(Act.ASK, Act.INVITE) or is_question(sentence)


def _reports(sentence: Sentence) -> bool:
    return sentence.stance in _REPORTED and not _asks(sentence)


def _readings(
    state: PersonaState, spoken: Sequence[Sentence]
) -> Iterator[tuple[tuple[Sentence, ...], tuple[Measured, ...]]]:
    """The numbers that a question may rest on: its own, then those said before it, then those of the turn before."""
    own = measured(spoken[-1].text)
    if own:
        yield (spoken[-1],), own
    given, quotes = own, tuple(spoken[-1:])
    for sentence in reversed(spoken[:-1]):
        more = () if _reports(sentence) else measured(sentence.text)
        if more:
            given, quotes = (*more, *given), (sentence, *quotes)
            yield quotes, given
    earlier = state.conversation.given
    # "Bravo, 55!" goes on with nothing.
    if earlier and given and _questions(spoken[-1]):
        # "And another 20 percent off?" goes on; "And at 25?" is the same once more.
        instead = [(quotes, figure) for figure in _replaced(earlier, given)]
        further = [(quotes, (*earlier, *given))]
        yield from (
            (*instead, *further) if all(_kind(figure) is Measure.MONEY for figure in given) else (*further, *instead)
        )


def _replaced(earlier: Sequence[Measured], fresh: Sequence[Measured]) -> Iterator[tuple[Measured, ...]]:
    """The earlier numbers with the fresh ones in the place of those of their kind, where there is one way to do it."""
    kinds = {_kind(figure) for figure in fresh}
    places = [i for i, old in enumerate(earlier) if _kind(old) in kinds]
    if not places and kinds == {Measure.MONEY}:
        # A bare number is the one that was named last.
        places = list(range(len(earlier)))[-len(fresh) :]
    if len(kinds) == 1 and len(places) == len(fresh):
        by_place = dict(zip(places, fresh, strict=True))
        yield tuple(by_place.get(i, old) for i, old in enumerate(earlier))


def _kind(figure: Measured) -> Measure:
    """What it measures, as far as it is said."""
    return Measure.MONEY if figure.measure in _LOOSE else figure.measure


def _taken(
    case: CompiledCase,
    state: PersonaState,
    quotes: Sequence[Sentence],
    given: tuple[Measured, ...],
    among: Container[str] | None = None,
) -> Task | None:
    """The task that these numbers set: of skills that need the same, the one whose examples are most like it."""
    words = frozenset[str]().union(*(_gist(quote.text) for quote in quotes))
    skills = [skill for skill in case.skills if among is None or skill.id in among]
    fitting = [(skill, filled) for skill in skills if (filled := _filled(skill, given)) is not None]
    best = max(fitting, key=lambda pair: _likeness(pair[0], words), default=None)
    if best is None:
        return None
    skill, filled = best
    known: dict[str, Value] = {}
    for name, figure in filled.items():
        known |= named(name, skill.given[name], figure.value, figure.parts)
    ways = skill.right if all_hold(skill.insight, state.said) or not skill.wrong else skill.wrong
    worked = work_out(ways, known)
    if worked is None:
        return None
    texts = tuple(quote.text for quote in quotes)
    return Task(skill.id, texts, worked, skill.shows, _is_own(skill, given), _as_understood(skill, filled))


def _as_understood(skill: Skill, filled: Mapping[str, Measured]) -> tuple[Measured, ...]:
    """The numbers as what they were taken for: "25 and 20 off" are percentages from then on."""
    return tuple(
        replace(filled[name], measure=measure if filled[name].measure is Measure.NUMBER else filled[name].measure)
        for name, measure in skill.given.items()
    )


def _likeness(skill: Skill, words: frozenset[str]) -> float:
    """How much of the task is in the example that is most like it."""
    return max(
        (2 * len(words & stems) / (len(words) + len(stems)) for ask in skill.asks if (stems := _gist(ask))),
        default=0.0,
    )


def _filled(skill: Skill, given: Sequence[Measured]) -> dict[str, Measured] | None:
    """Each name of a skill with its number; None where one is missing, or a number is left over."""
    if len(skill.given) != len(given):
        return None
    filled: dict[str, Measured] = {}
    bare: list[Measured] = []
    for figure in given:
        wanted = (n for n, m in skill.given.items() if n not in filled and m is figure.measure is not Measure.NUMBER)
        name = next(wanted, None)
        if name is not None:
            filled[name] = figure
        elif figure.measure in _LOOSE:
            bare.append(figure)
        else:
            return None
    for figure in sorted(bare, key=lambda figure: figure.measure is not Measure.MONEY):
        exact = Measure.NUMBER if figure.measure is Measure.MONEY else None
        open_ = [n for n, m in skill.given.items() if n not in filled and m not in (Measure.FRACTION, Measure.ARGUMENT)]
        open_ = [n for n in open_ if exact is None or skill.given[n] is exact]
        if not open_:
            return None
        filled[open_[0]] = figure
    taken_for = {skill.given[name] for name, figure in filled.items() if figure.measure is Measure.NUMBER}
    # "Why 45 and not 44, after 20 percent?": who leaves out what is meant means one kind of thing by it.
    return _in_order(skill, given, filled) if len(taken_for) <= 1 else None


def _in_order(skill: Skill, given: Sequence[Measured], filled: Mapping[str, Measured]) -> dict[str, Measured]:
    """The numbers of one kind in the order in which they were named: "half an hour at 20 and one at 60 km/h"."""
    places = {id(figure): place for place, figure in enumerate(given)}
    ordered = dict(filled)
    for kind in set(skill.given.values()):
        names = [name for name, measure in skill.given.items() if measure is kind]
        numbers = sorted((filled[name] for name in names), key=lambda figure: places[id(figure)])
        ordered |= zip(names, numbers, strict=True)
    return ordered


def _is_own(skill: Skill, given: Iterable[Measured]) -> bool:
    """Whether the numbers are the case's own."""
    values = sorted(figure.value for figure in given)
    return any(values == sorted(own) for own in skill.known)


def _gist(text: str) -> frozenset[str]:
    """What a task says beside its numbers."""
    numbers = {*map(stem, (*CARDINALS, *DENOMINATORS))}
    return frozenset(each for each in content_stems(text) if not each.isdigit() and each not in numbers)
