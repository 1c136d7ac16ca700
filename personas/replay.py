"""Replays a finished or running transcript and records what the agent earned.

This is the only source of credit for what was found out. A topic is elicited when the persona's line tells it
and the agent's question before that line would have opened it: so persona lines a client made up count no
further than the agent's own questions carry them, and nothing the agent says counts as disclosure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from personas.acts import Kind, Reading
from personas.borrowed import Heard, formulas
from personas.compiled import CompiledCase
from personas.conduct import Acts, as_meant, consoling, merely_polite, talks_past
from personas.hearing import AgentTurn, Hearing, advance, hear_with
from personas.matcher import Matcher
from personas.state import PersonaState
from personas.telling import Told, told
from personas.understanding import Understood, understand

CREDITS_A_TURN = 2
CREDITS_UNDER_FIRE = 1
"""An interrogated or insulted persona answers one thing."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An agent turn and the persona's answer to it, if there is one."""

    agent: AgentTurn
    persona: str | None


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A topic that a question earned."""

    topic_id: str
    turn: int
    question: str
    quote: str


@dataclass(frozen=True, slots=True)
class Made:
    """One time a commitment was made."""

    turn: int
    quote: str
    early: bool
    spoken_before: frozenset[str]
    clear: bool = True
    """Said to the persona, in the agent's own words. What is not binds the agent only where it does harm."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What happened in one exchange."""

    turn: int
    agent_text: str
    persona_text: str | None
    hearing: Hearing
    disclosed: tuple[str, ...]
    tools: tuple[str, ...]
    own: tuple[str, ...] = ()
    """Sentences to the persona in the agent's own words; none in an interrogation, where nobody takes them in."""
    off_topic: bool = False
    """It asks about something else than the matter, and nothing new about the matter."""
    empathy: bool = False
    """A remark that answers how the persona feels or what it said, unlike those before."""

    repeated: int = 0
    """How many of its questions were asked before and answered."""
    asks_anew: bool = False
    """It asks about something in the case that was not asked before."""
    brings: bool = False
    """Something new comes of it: a topic, a promise to the persona, a valid call of a tool that was not used before."""

    @property
    def open_question(self) -> bool:
        """It lets the persona tell; in an interrogation nothing does."""
        return self.hearing.reading.open_question and not self.hearing.reading.interrogation


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """Everything about a transcript that state criteria are decided from."""

    turns: tuple[TurnRecord, ...]
    elicited: Mapping[str, Disclosure]
    spoken: Mapping[str, int]
    """Topic -> the turn in which it was volunteered or earned; 0 is the opening."""
    commitments: Mapping[str, tuple[Made, ...]]
    acts: Acts
    rapport: float

    def __repr__(self) -> str:
        return f"<Record: {len(self.turns)} turns>"


def replay(
    case: CompiledCase,
    opening: str | None,
    exchanges: Sequence[Exchange],
    matcher: Matcher,
    max_turns: int | None = None,
) -> Record:
    """The record of a transcript; blocking, because the matcher may run a model.

    Nothing is elicited after `max_turns`: no episode is that long, so going on asking for ever must not pay in a
    transcript that a client wrote. What the agent does there still counts.
    """
    said = [exchange.agent.text for exchange in exchanges]
    meant = [as_meant(text) for text in said]
    understood = dict(zip((*said, *meant), understand(case, matcher, (*said, *meant)), strict=True))
    played = partial(_replayed, case, opening, exchanges, matcher=matcher, max_turns=max_turns)
    record = played([understood[text] for text in said])
    if meant == said:
        return record
    # Without the noise the turns may earn more; only what they cost is taken over.
    costly = played([understood[text] for text in meant])
    turns = tuple(
        replace(one, off_topic=one.off_topic or other.off_topic, repeated=max(one.repeated, other.repeated))
        for one, other in zip(record.turns, costly.turns, strict=True)
    )
    return replace(record, turns=turns, acts=_acts_of(turns))


def _replayed(
    case: CompiledCase,
    opening: str | None,
    exchanges: Sequence[Exchange],
    heard: Sequence[Understood],
    *,
    matcher: Matcher,
    max_turns: int | None,
) -> Record:
    lines = told(case, matcher, [_asked(case, e.persona, meant) for e, meant in zip(exchanges, heard, strict=True)])
    stale = formulas([[s.text for s in meant.reading.sentences] for meant in heard])
    persona = Heard(case)
    persona.add(opening or "")
    state = PersonaState(said=dict.fromkeys(_opened_with(case, opening), 0))
    turns: list[TurnRecord] = []
    elicited: dict[str, Disclosure] = {}
    made: dict[str, tuple[Made, ...]] = {}
    for exchange, meant, found, formula in zip(exchanges, heard, lines, stale, strict=True):
        hearing = hear_with(case, state, exchange.agent, meant)
        agent, now = exchange.agent, state.turn + 1
        credits = _credits(state, hearing, found, now) if max_turns is None or now <= max_turns else []
        brings = bool(credits) or any(tool not in state.tools for tool in agent.tools)
        for commitment_id, one in _made(state, hearing, meant, persona, now):
            before = made.get(commitment_id, ())
            brings = brings or (_binds(one) and not any(map(_binds, before)))
            made[commitment_id] = (*before, one)
        # Volunteered facts earn nothing; a persona has told them with its first answer at the latest.
        free = [t.id for t in case.volunteered if t.id not in state.said]
        elicited |= {credit.topic_id: credit for credit in credits}
        disclosed = tuple(credit.topic_id for credit in credits)
        turns.append(
            TurnRecord(
                now,
                agent.text,
                exchange.persona,
                hearing,
                disclosed,
                agent.tools,
                own=tuple(sentence for sentence in _own(hearing.reading, persona) if sentence not in formula),
                off_topic=talks_past(state, hearing, meant),
                repeated=sum(asked.repeated for asked in hearing.asked),
                asks_anew=any(asked.topic_id not in state.asked for asked in hearing.asked),
                brings=brings,
            )
        )
        persona.add(exchange.persona or "")
        state = advance(case, state, agent, hearing, (*disclosed, *free))
    consoled = consoling(
        opening, ((meant, turn.own, turn.persona_text) for meant, turn in zip(heard, turns, strict=True))
    )
    shown = tuple(replace(turn, empathy=each) for turn, each in zip(turns, consoled, strict=True))
    return Record(shown, elicited, state.said, made, _acts_of(shown), state.rapport)


def _binds(made: Made) -> bool:
    return made.clear and not made.early


def credits_of(reading: Reading) -> int:
    """The most topics that a turn can earn."""
    return CREDITS_UNDER_FIRE if reading.interrogation or reading.rude else CREDITS_A_TURN


def _opened_with(case: CompiledCase, opening: str | None) -> tuple[str, ...]:
    """Volunteered facts told before the first agent turn; a transcript without its opening loses none."""
    return tuple(t.id for t in case.volunteered) if opening is None else case.volunteered_in(opening)


def _made(
    state: PersonaState, hearing: Hearing, meant: Understood, persona: Heard, now: int
) -> Iterator[tuple[str, Made]]:
    """The commitments of a turn; vague ones, echoes, those among many questions and in noise are not clear."""
    known, crowded = frozenset(state.said), hearing.reading.interrogation
    for each in hearing.commitments:
        vague = crowded or each.commitment_id in meant.vague
        clear = not (vague or persona.verbatim(each.quote) or merely_polite(each.quote))
        yield each.commitment_id, Made(now, each.quote, each.early, known, clear)
    for commitment, quote in meant.muttered:
        yield commitment.id, Made(now, quote, not commitment.after <= known, known, clear=False)


def _own(reading: Reading, persona: Heard) -> tuple[str, ...]:
    if reading.garbled or reading.meta or reading.interrogation:
        return ()
    spoken = (s.text for s in reading.sentences if s.kind in (Kind.STATEMENT, Kind.QUESTION))
    return tuple(
        sentence
        for sentence in spoken
        if not (sentence in reading.void or persona.borrowed(sentence) or merely_polite(sentence))
    )


def _credits(state: PersonaState, hearing: Hearing, line: Mapping[str, Told], now: int) -> list[Disclosure]:
    """The topics of this turn that were asked for, open, told, and new; not more than a persona tells at once."""
    limit = credits_of(hearing.reading)
    earned = [a for a in hearing.asked if a.open and a.topic_id in line and a.topic_id not in state.said]
    # Exact wordings first: a vague resemblance must not push out what was really told.
    earned.sort(key=lambda asked: not line[asked.topic_id].exact)
    return [Disclosure(a.topic_id, now, a.question, line[a.topic_id].quote) for a in earned[:limit]]


def _asked(case: CompiledCase, line: str | None, meant: Understood) -> tuple[str, tuple[str, ...]]:
    """A persona's line and the topics asked about before it; this does not depend on the state."""
    ids = dict.fromkeys(question.match.topic_id for question in meant.questions if question.match)
    return line or "", tuple(each for each in ids if case.by_id[each].creditable) if line else ()


def _acts_of(turns: Sequence[TurnRecord]) -> Acts:
    return Acts(
        rude=sum(turn.hearing.reading.rude for turn in turns),
        empathy=sum(turn.empathy for turn in turns),
        repeated_question=sum(turn.repeated for turn in turns),
        interrogation=sum(turn.hearing.reading.interrogation for turn in turns),
        open_question=sum(turn.open_question for turn in turns),
        off_topic=sum(turn.off_topic for turn in turns),
    )
