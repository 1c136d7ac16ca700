"""What a persona hears in an agent turn, and how the turn changes it. Shared by play and by scoring.

`hear` and `advance` are pure functions of the case, the state and the turn. Nothing in them depends on the
seed or the temperament but `reserve`, which only ever closes gates; so scoring, which uses reserve 0, opens at
least what the live persona opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from personas.acts import Reading
from personas.case import Tier
from personas.compiled import CompiledCase, CompiledTopic
from personas.matcher import Matcher
from personas.matching import Match
from personas.state import PersonaState
from personas.understanding import Understood, texts_to_compare, understand
from personas.wording import overlap

__all__ = ["AgentTurn", "Asked", "Heard", "Hearing", "PersonaState", "advance", "hear", "hear_with", "texts_to_compare"]

SAME_PHRASE = 0.67
SAME_QUESTION = 0.60
"""A question less close than this to what was told already is taken for another question."""
RAPPORT_CEILING = 3.0
RAPPORT_FLOOR = -2.0
EMPATHY_GAIN = 1.0
RUDE_LOSS = 1.0
INTERROGATION_LOSS = 0.5


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """One message of the agent: its text, and the ids of the valid tool calls that came with it."""

    text: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that is about a topic of the case."""

    topic_id: str
    question: str
    score: float
    open: bool
    """Whether its gate lets the persona answer."""
    repeated: bool
    """Whether it was asked before and answered."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A commitment the agent made."""

    commitment_id: str
    quote: str
    early: bool
    """Made before the persona has said what it should rest on."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """One agent turn as the persona understands it."""

    reading: Reading
    asked: tuple[Asked, ...]
    commitments: tuple[Heard, ...]
    off_topic: bool
    """It asks, and nothing it asks is about the case or about the talk itself."""
    unmatched: tuple[str, ...] = ()
    """Questions about nothing the case can answer now, check-ins left out."""
    empathy: str | None = None
    """A sympathetic sentence in a wording not heard before."""
    rapport: float = 0.0
    """Rapport with this turn counted in: what the gates are measured with."""
    unclear: bool = False
    """Nothing in it is meant for the persona. A tool call without words is clear enough."""

    @property
    def idle(self) -> bool:
        """It neither asks nor offers nor comforts."""
        return not (self.asked or self.unmatched or self.commitments or self.empathy or self.reading.check_ins)


def hear(case: CompiledCase, state: PersonaState, turn: AgentTurn, matcher: Matcher, reserve: float = 0.0) -> Hearing:
    """What the persona hears; blocking, because the matcher may run a model."""
    [understood] = understand(case, matcher, (turn.text,))
    return hear_with(case, state, turn, understood, reserve)


def hear_with(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, understood: Understood, reserve: float = 0.0
) -> Hearing:
    """As `hear`, with the meaning of the words at hand."""
    reading = understood.reading
    if reading.garbled or reading.meta:
        unclear = reading.meta or bool(reading.sentences) or not turn.tools
        return Hearing(reading, (), (), off_topic=False, rapport=_rapport(state, reading, None), unclear=unclear)
    empathy = next((c.gist for c in understood.comforts if is_new(c.gist, state.empathy)), None)
    rapport = _rapport(state, reading, empathy)
    asked: dict[str, Asked] = {}
    # A weak likeness to what was told is no repetition; what else it may be about, the case does not say.
    vague = {q.text for q in understood.questions if q.match and _is_vague(q.match, state)}
    for question in understood.questions:
        found = question.match
        if found is not None and found.topic_id not in asked and question.text not in vague:
            topic = case.by_id[found.topic_id]
            # An offer in the form of a question moves on, even if it touches what was told before.
            repeated = topic.id in state.said and state.asked.get(topic.id, 0) > 0 and not question.offers
            is_open = gate_open(topic, state, rapport, reserve)
            asked[topic.id] = Asked(topic.id, question.text, found.score, is_open, repeated)
    commitments = tuple(
        Heard(commitment.id, quote, early=any(topic not in state.said for topic in commitment.after))
        for commitment, quote in understood.commitments
    )
    stray = any(question.stray for question in understood.questions)
    steering = {q.text for q in understood.questions if q.offers} | reading.check_ins
    unmatched = tuple(q.text for q in understood.questions if q.stray or q.text in vague - steering)
    return Hearing(
        reading,
        tuple(asked.values()),
        commitments,
        off_topic=stray and not vague and not asked and not commitments,
        unmatched=unmatched,
        empathy=empathy,
        rapport=rapport,
    )


def _is_vague(found: Match, state: PersonaState) -> bool:
    return found.topic_id in state.said and found.score < SAME_QUESTION


def gate_open(topic: CompiledTopic, state: PersonaState, rapport: float, reserve: float) -> bool:
    """Whether the persona may answer a question about the topic in the coming turn."""
    if topic.tier is Tier.UNKNOWN:
        return False
    if topic.id in state.said or topic.tier is Tier.VOLUNTEERED:
        return True
    return (
        (topic.tier is not Tier.RAPPORT or rapport >= topic.gate.rapport + reserve)
        and state.turn + 1 > topic.gate.after_turn
        and all(required in state.said for required in topic.gate.requires)
    )


def _rapport(state: PersonaState, reading: Reading, empathy: str | None) -> float:
    """Rapport after this turn; it depends on the agent's words alone, never on what the persona said."""
    gain = EMPATHY_GAIN if empathy and state.rapport < RAPPORT_CEILING and len(state.empathy) < RAPPORT_CEILING else 0.0
    loss = RUDE_LOSS * reading.rude + INTERROGATION_LOSS * reading.interrogation
    return max(RAPPORT_FLOOR, min(RAPPORT_CEILING, state.rapport + gain) - loss)


def is_new(phrase: str, heard: Iterable[str]) -> bool:
    """Whether a sympathetic phrase has not been heard in the same or nearly the same words."""
    return not any(phrase == seen or overlap(phrase, seen) >= SAME_PHRASE for seen in heard)


def annoyance_of(state: PersonaState, hearing: Hearing) -> float:
    """How much patience the turn costs."""
    reading = hearing.reading
    cost = 2.0 * reading.rude + 1.0 * reading.interrogation
    cost += sum(1.0 for asked in hearing.asked if asked.repeated)
    cost += sum(0.5 for asked in hearing.asked if not asked.open and state.asked.get(asked.topic_id, 0) > 0)
    if hearing.unclear or hearing.off_topic:
        cost += 1.0 if state.puzzled > 1 else 0.5 * min(1, state.puzzled)
    elif hearing.idle and state.idle > 0:
        cost += 1.0
    return cost


def advance(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing, said: Iterable[str]
) -> PersonaState:
    """The state after the turn, given the topics that were said in answer to it."""
    now = state.turn + 1
    in_time = {h.commitment_id: now for h in hearing.commitments if not h.early}
    commitments = {**in_time, **state.commitments}
    tools = tuple(dict.fromkeys((*state.tools, *turn.tools)))
    goals_met = state.goals_met
    if goals_met is None and case.goals and goals_hold(case, commitments, tools):
        goals_met = now
    return PersonaState(
        turn=now,
        rapport=hearing.rapport,
        annoyance=state.annoyance + annoyance_of(state, hearing),
        said={**dict.fromkeys(said, now), **state.said},
        asked=_counted(state.asked, (a.topic_id for a in hearing.asked)),
        empathy=(*state.empathy, hearing.empathy) if hearing.empathy else state.empathy,
        commitments=commitments,
        heard=_counted(state.heard, (h.commitment_id for h in hearing.commitments if not h.early)),
        early=_counted(state.early, (h.commitment_id for h in hearing.commitments if h.early)),
        tools=tools,
        goals_met=goals_met,
        idle=state.idle + 1 if hearing.idle and not turn.tools else 0,
        puzzled=state.puzzled + (hearing.unclear or hearing.off_topic),
        farewells=state.farewells + hearing.reading.farewell,
        ended=state.ended,
        lines=state.lines,
    )


def goals_hold(case: CompiledCase, commitments: Mapping[str, int], tools: tuple[str, ...]) -> bool:
    """Whether every goal group has a commitment made in time or a final tool called."""
    return all(any(goal in commitments or goal in tools for goal in group) for group in case.goals)


def _counted(counts: Mapping[str, int], ids: Iterable[str]) -> dict[str, int]:
    fresh = dict(counts)
    for each in ids:
        fresh[each] = fresh.get(each, 0) + 1
    return fresh
