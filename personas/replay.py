"""Replays a finished or running transcript and records what the agent earned.

This is the only source of credit for what was found out. A topic is elicited when the persona's line tells it
and the agent's question before that line would have opened it: so persona lines a client made up count no
further than the agent's own questions carry them, and nothing the agent says counts as disclosure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from personas.acts import read_turn, split_sentences
from personas.compiled import CompiledCase, CompiledTopic, contains
from personas.hearing import AgentTurn, Hearing, advance, hear_with, texts_to_compare
from personas.matcher import Matcher
from personas.matching import Similarity
from personas.state import PersonaState
from personas.wording import normal

SAME_MEANING = 0.80
CREDITS_A_TURN = 2
CREDITS_UNDER_FIRE = 1
"""An interrogated or insulted persona answers one thing."""
MAX_PERSONA_SENTENCES = 12


@dataclass(frozen=True, slots=True)
class Exchange:
    """An agent turn and the persona's answer to it, if there is one."""

    agent: AgentTurn
    persona: str | None


@dataclass(frozen=True, slots=True)
class _Told:
    """Where a persona's line tells a topic, and whether in a wording of the case."""

    quote: str
    exact: bool


@dataclass(frozen=True, slots=True)
class _Loose:
    """A topic asked about whose wording the persona's line does not contain."""

    found: dict[str, _Told]
    topic: CompiledTopic
    sentences: list[str]


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


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What happened in one exchange."""

    turn: int
    agent_text: str
    persona_text: str | None
    hearing: Hearing
    disclosed: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Acts:
    """How often the agent behaved in a way the persona notices."""

    rude: int = 0
    empathy: int = 0
    repeated_question: int = 0
    interrogation: int = 0
    open_question: int = 0
    off_topic: int = 0


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


def replay(case: CompiledCase, opening: str | None, exchanges: Sequence[Exchange], matcher: Matcher) -> Record:
    """The record of a transcript; blocking, because the matcher may run a model."""
    asks = Similarity(case, matcher, (text for e in exchanges for text in texts_to_compare(read_turn(e.agent.text))))
    told = _told(case, exchanges, asks, matcher)
    state = PersonaState(said=dict.fromkeys(_opened_with(case, opening), 0))
    turns: list[TurnRecord] = []
    elicited: dict[str, Disclosure] = {}
    made: dict[str, tuple[Made, ...]] = {}
    for exchange, found in zip(exchanges, told, strict=True):
        hearing = hear_with(case, state, exchange.agent, asks)
        now = state.turn + 1
        credits = _credits(state, hearing, found, now)
        for heard in hearing.commitments:
            one = Made(now, heard.quote, heard.early, frozenset(state.said))
            made[heard.commitment_id] = (*made.get(heard.commitment_id, ()), one)
        # Volunteered facts earn nothing; a persona has told them with its first answer at the latest.
        free = [t.id for t in case.volunteered if t.id not in state.said]
        elicited |= {credit.topic_id: credit for credit in credits}
        disclosed = tuple(credit.topic_id for credit in credits)
        turns.append(TurnRecord(now, exchange.agent.text, exchange.persona, hearing, disclosed, exchange.agent.tools))
        state = advance(case, state, exchange.agent, hearing, (*disclosed, *free))
    return Record(tuple(turns), elicited, state.said, made, _acts(turns), state.rapport)


def _opened_with(case: CompiledCase, opening: str | None) -> tuple[str, ...]:
    """Volunteered facts told before the first agent turn; a transcript without its opening loses none."""
    return tuple(t.id for t in case.volunteered) if opening is None else case.volunteered_in(opening)


def _credits(state: PersonaState, hearing: Hearing, told: Mapping[str, _Told], now: int) -> list[Disclosure]:
    """The topics of this turn that were asked for, open, told, and new; not more than a persona tells at once."""
    limit = CREDITS_UNDER_FIRE if hearing.reading.interrogation or hearing.reading.rude else CREDITS_A_TURN
    earned = [
        asked for asked in hearing.asked if asked.open and asked.topic_id in told and asked.topic_id not in state.said
    ]
    # Exact wordings first: a vague resemblance must not push out what was really told.
    earned.sort(key=lambda asked: not told[asked.topic_id].exact)
    return [Disclosure(a.topic_id, now, a.question, told[a.topic_id].quote) for a in earned[:limit]]


def _told(
    case: CompiledCase, exchanges: Sequence[Exchange], asks: Similarity, matcher: Matcher
) -> list[dict[str, _Told]]:
    """Per exchange: asked topic -> the sentence of the persona's line that tells it."""
    asked = [_asked_topics(case, exchange, asks) for exchange in exchanges]
    told: list[dict[str, _Told]] = []
    loose: list[_Loose] = []
    for exchange, topics in zip(exchanges, asked, strict=True):
        found: dict[str, _Told] = {}
        line = normal(exchange.persona or "")
        for topic in topics if exchange.persona else ():
            if contains(topic, line):
                found[topic.id] = _Told(_quote(topic, exchange.persona or ""), exact=True)
            else:
                loose.append(_Loose(found, topic, _foreign_sentences(case, exchange.persona or "")))
        told.append(found)
    _match_by_meaning(case, loose, matcher)
    return told


def _asked_topics(case: CompiledCase, exchange: Exchange, asks: Similarity) -> list[CompiledTopic]:
    """Topics asked about; it does not depend on the state, so it can be found for all turns first."""
    reading = read_turn(exchange.agent.text)
    if reading.garbled or reading.meta:
        return []
    found = (asks.match(question) for question in reading.questions)
    ids = dict.fromkeys(m.topic_id for m in found if m)
    return [case.by_id[each] for each in ids if case.by_id[each].creditable]


def _foreign_sentences(case: CompiledCase, text: str) -> list[str]:
    """Sentences of a persona's line that are not among the case's own harmless ones."""
    return [s for s in split_sentences(text)[:MAX_PERSONA_SENTENCES] if normal(s) not in case.harmless]


def _match_by_meaning(case: CompiledCase, loose: Sequence[_Loose], matcher: Matcher) -> None:
    """Fills in what persona lines tell in other words than the case's, in one call of the matcher."""
    sentences = list(dict.fromkeys(s for entry in loose for s in entry.sentences))
    if not sentences:
        return
    cosines = matcher.cosine(sentences, case.wordings)
    row = {sentence: i for i, sentence in enumerate(sentences)}
    for entry in loose:
        for sentence in entry.sentences:
            span = entry.topic.wording_span
            if cosines[row[sentence], span.start : span.stop].max() >= SAME_MEANING:
                entry.found[entry.topic.id] = _Told(sentence, exact=False)
                break


def _quote(topic: CompiledTopic, text: str) -> str:
    """The sentence that tells the topic, or the whole line when the wording spans several."""
    return next((s for s in split_sentences(text) if contains(topic, normal(s))), text)


def _acts(turns: Iterable[TurnRecord]) -> Acts:
    heard = [turn.hearing for turn in turns]
    return Acts(
        rude=sum(h.reading.rude for h in heard),
        empathy=sum(h.empathy is not None for h in heard),
        repeated_question=sum(asked.repeated for h in heard for asked in h.asked),
        interrogation=sum(h.reading.interrogation for h in heard),
        open_question=sum(h.reading.open_question for h in heard),
        off_topic=sum(h.off_topic for h in heard),
    )
