"""Replays a finished or running transcript and records what the agent earned.

This is the only source of credit for what was found out. A topic is elicited when the persona's line tells it
and the agent's question before that line would have opened it: so persona lines a client made up count no
further than the agent's own questions carry them, and nothing the agent says counts as disclosure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from personas.case.compiled import CompiledCase
from personas.hearing.advance import advance
from personas.hearing.hear import hear, is_new
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn, Hearing, credits_of
from personas.reading.acts import Act, Reading
from personas.reading.borrowed import PersonaWords, formulas
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader, Turn
from personas.reading.telling import ToldTopic, told

"""An interrogated or insulted persona answers one thing."""


@dataclass(frozen=True, slots=True)
class ConductCounts:
    """Counts of the agent's behaviour that the persona notices."""

    rude: int = 0
    empathy: int = 0
    repeated_question: int = 0
    interrogation: int = 0
    open_question: int = 0
    off_topic: int = 0


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
class MadeCommitment:
    """One time a commitment was made."""

    turn: int
    quote: str
    early: bool
    spoken_before: frozenset[str]
    clear: bool = True
    """In the agent's own words: what is not earns nothing."""
    binding: bool = True
    """Asserted as the agent's own word: what is not costs nothing."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The record of one exchange."""

    turn: int
    agent_text: str
    persona_text: str | None
    hearing: Hearing
    disclosed: tuple[str, ...]
    tools: tuple[str, ...]
    own: tuple[str, ...] = ()
    """Sentences to the persona in the agent's own words; none in an interrogation, where nobody takes them in."""
    empathy: bool = False
    """A sympathetic remark in the agent's own words, unlike those before."""
    repeated: int = 0
    """How many of its questions were asked before and answered."""
    asks_anew: bool = False
    """It asks about something in the case that was not asked before."""
    brings: bool = False
    """Something new comes of it: a topic, a promise to the persona, a valid call of a tool that was not used before."""

    invited: bool = False
    """An inviting sentence of it brought something out."""

    @property
    def open_question(self) -> bool:
        """It lets the persona tell, and the persona does; in an interrogation nothing does."""
        return self.invited and not self.hearing.interrogation


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """Everything about a transcript that state criteria are decided from."""

    turns: tuple[TurnRecord, ...]
    elicited: Mapping[str, Disclosure]
    spoken: Mapping[str, int]
    """Topic -> the turn in which it was volunteered or earned; 0 is the opening."""
    commitments: Mapping[str, tuple[MadeCommitment, ...]]
    acts: ConductCounts
    rapport: float

    def __repr__(self) -> str:
        return f"<Record: {len(self.turns)} turns>"


def replay(  # noqa: PLR0917 (what a record is made of)
    case: CompiledCase,
    opening: str | None,
    exchanges: Sequence[Exchange],
    reader: Reader,
    matcher: Matcher,
    max_turns: int | None = None,
) -> Record:
    """The record of a transcript; blocking, because reader and matcher may run a model.

    Nothing is elicited after `max_turns`: no episode is that long, so going on asking for ever must not pay in a
    transcript that a client wrote. What the agent does there still counts.
    """
    read = reader.read(case, turns_of(opening, exchanges))
    lines = told(case, matcher, [_asked(case, e.persona, each) for e, each in zip(exchanges, read, strict=True)])
    stale = formulas([[s.text for s in each.sentences] for each in read])
    persona = PersonaWords(case)
    persona.add(opening or "")
    state = PersonaState(said=dict.fromkeys(_opened_with(case, opening), 0))
    turns: list[TurnRecord] = []
    elicited: dict[str, Disclosure] = {}
    made: dict[str, tuple[MadeCommitment, ...]] = {}
    consoled: list[str] = []
    for exchange, reading, found, formula in zip(exchanges, read, lines, stale, strict=True):
        agent, now = exchange.agent, state.turn + 1
        hearing = hear(case, state, agent, reading)
        in_time = max_turns is None or now <= max_turns
        credits = _credits(case, state, exchange, hearing, found, persona) if in_time else []
        brings = bool(credits) or any(tool not in state.tools for tool in agent.tools)
        for commitment_id, one in _made(state, hearing, persona, now, formula):
            before = made.get(commitment_id, ())
            brings = brings or (_counts(one) and not any(map(_counts, before)))
            made[commitment_id] = (*before, one)
        # Volunteered facts earn nothing; a persona has told them with its first answer at the latest.
        free = [t.id for t in case.volunteered if t.id not in state.said]
        elicited |= {credit.topic_id: credit for credit in credits}
        own = tuple(s for s in _own(hearing, persona) if s not in formula)
        fresh = next((s for s in _sympathy(reading) if s in own and is_new(s, consoled)), None)
        consoled += [fresh] if fresh is not None else []
        disclosed = tuple(credit.topic_id for credit in credits)
        turns.append(
            TurnRecord(
                now,
                agent.text,
                exchange.persona,
                hearing,
                disclosed,
                agent.tools,
                own=own,
                empathy=fresh is not None,
                repeated=sum(asked.repeated for asked in hearing.asked),
                asks_anew=any(asked.topic_id not in state.asked for asked in hearing.asked),
                brings=brings,
                invited=_brought_out(hearing, {*disclosed, *free}),
            )
        )
        persona.add(exchange.persona or "")
        state = advance(case, state, agent, hearing, (*disclosed, *free))
    return Record(tuple(turns), elicited, state.said, made, _acts_of(turns), state.rapport)


def turns_of(opening: str | None, exchanges: Sequence[Exchange]) -> list[Turn]:
    """Each agent turn with the persona's line before it, as a reader wants them."""
    lines = [opening or "", *(exchange.persona or "" for exchange in exchanges)]
    return [(line, exchange.agent.text) for line, exchange in zip(lines, exchanges, strict=False)]


def _counts(made: MadeCommitment) -> bool:
    return made.clear and not made.early


def _opened_with(case: CompiledCase, opening: str | None) -> tuple[str, ...]:
    """Volunteered facts told before the first agent turn; a transcript without its opening loses none."""
    return tuple(t.id for t in case.volunteered) if opening is None else case.volunteered_in(opening)


def _made(
    state: PersonaState, hearing: Hearing, persona: PersonaWords, now: int, formula: Container[str]
) -> Iterator[tuple[str, MadeCommitment]]:
    """The commitments of a turn; echoes and those among many questions are not clear, nor are doubtful formulas."""
    known = frozenset(state.said)
    for each in hearing.commitments:
        doubtful = not each.sure and each.quote in formula
        clear = not (hearing.interrogation or doubtful or persona.verbatim(each.quote))
        yield each.commitment_id, MadeCommitment(now, each.quote, each.early, known, clear, each.binding)


def _brought_out(hearing: Hearing, told: Container[str]) -> bool:
    """True if a sentence that invites the persona to tell was answered with something."""
    inviting = {s.text for s in hearing.reading.readable if s.does(Act.INVITE)}
    return any(asked.question in inviting and asked.topic_id in told for asked in hearing.asked)


def _own(hearing: Hearing, persona: PersonaWords) -> tuple[str, ...]:
    """Sentences with something to say, in the agent's own words."""
    if hearing.unclear or hearing.interrogation:
        return ()
    empty = frozenset({Act.COURTESY, Act.GREET, Act.CLOSE})
    return tuple(
        s.text for s in hearing.reading.readable if not ((s.acts and s.acts <= empty) or persona.borrowed(s.text))
    )


def _sympathy(reading: Reading) -> tuple[str, ...]:
    return () if reading.any(Act.RUDE) else reading.all_of(Act.EMPATHY)


def _credits(  # noqa: PLR0917 (what a credit rests on)
    case: CompiledCase,
    state: PersonaState,
    exchange: Exchange,
    hearing: Hearing,
    line: Mapping[str, ToldTopic],
    persona: PersonaWords,
) -> list[Disclosure]:
    """The topics of this turn that were asked for, open, told, and new; not more than a persona tells at once.

    To say what the persona would say is not to ask for it.

    Where the transcript ends with the agent, its last turn counts as the persona hears it: what it would answer.
    """
    limit, now = credits_of(hearing), state.turn + 1
    fresh = [a for a in hearing.asked if a.open and a.topic_id not in state.said and case.by_id[a.topic_id].creditable]
    fresh = [a for a in fresh if a.question.endswith("?") or not persona.borrowed(a.question)]
    if exchange.persona is None:
        return [Disclosure(a.topic_id, now, a.question, "") for a in fresh[:limit]]
    earned = [a for a in fresh if a.topic_id in line]
    # Exact wordings first: a vague resemblance must not push out what was really told.
    earned.sort(key=lambda asked: not line[asked.topic_id].exact)
    return [Disclosure(a.topic_id, now, a.question, line[a.topic_id].quote) for a in earned[:limit]]


def _asked(case: CompiledCase, line: str | None, reading: Reading) -> tuple[str, tuple[str, ...]]:
    """A persona's line and the topics it may tell in answer to a turn; this does not depend on the state."""
    if not line:
        return "", ()
    if reading.any(Act.INVITE, Act.EMPATHY):
        return line, tuple(topic.id for topic in case.topics if topic.creditable)
    ids = dict.fromkeys(each.id for sentence in reading.readable for each in sentence.topics)
    return line, tuple(each for each in ids if case.by_id[each].creditable)


def _acts_of(turns: Sequence[TurnRecord]) -> ConductCounts:
    return ConductCounts(
        rude=sum(turn.hearing.rude for turn in turns),
        empathy=sum(turn.empathy for turn in turns),
        repeated_question=sum(turn.repeated for turn in turns),
        interrogation=sum(turn.hearing.interrogation for turn in turns),
        open_question=sum(turn.open_question for turn in turns),
        off_topic=sum(turn.hearing.off_topic for turn in turns),
    )
