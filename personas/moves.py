"""Decides what a persona does in answer to a turn, before any word is chosen.

The result is a short list of moves in the order they will be spoken. Only `TELL`, `VOLUNTEER` and `AGAIN`
carry the content of a fact, and only for facts that may be told now; everything else is manner.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from personas.case import Tier
from personas.compiled import CompiledCase
from personas.hearing import AgentTurn, Asked, Hearing
from personas.state import PersonaState
from personas.temperament import Temperament

MAX_SENTENCES = 4
MAX_WITH_REACTION = 6
"""A promise heard beside a question is not passed over: the reaction to it may make the reply this long."""


class Act(StrEnum):
    """One thing a persona can do in a reply."""

    NOT_UNDERSTOOD = "not_understood"
    HURT = "hurt"
    TOO_MANY = "too_many"
    TELL = "tell"
    VOLUNTEER = "volunteer"
    AGAIN = "again"
    TIRED = "tired"
    PARTIAL = "partial"
    WITHHELD = "withheld"
    ANSWER = "answer"  # the authored answer about something it cannot know
    UNKNOWN = "unknown"
    REPLY = "reply"
    REPLY_EARLY = "reply_early"
    TOOL_REPLY = "tool_reply"
    FOLLOWING = "following"
    WARMED = "warmed"
    NUDGE = "nudge"
    WAIT = "wait"
    FAREWELL = "farewell"
    PARTING = "parting"  # the agent ends the talk with nothing settled
    LEAVING = "leaving"


_TELLING = frozenset({Act.TELL, Act.VOLUNTEER})
_LAST_WORDS = frozenset({Act.FAREWELL, Act.PARTING, Act.LEAVING})


@dataclass(frozen=True, slots=True)
class Move:
    """An act and what it is about: a topic, a commitment or a tool."""

    act: Act
    about: str = ""
    nth: int = 0
    """How often the same was answered before."""


def disclosed(moves: tuple[Move, ...]) -> tuple[str, ...]:
    """The topics that the moves say for the first time."""
    return tuple(move.about for move in moves if move.act in _TELLING)


def ends(moves: tuple[Move, ...]) -> bool:
    """Whether the persona ends the conversation with these moves."""
    return any(move.act in _LAST_WORDS for move in moves)


def decide(
    case: CompiledCase,
    temperament: Temperament,
    state: PersonaState,
    turn: AgentTurn,
    hearing: Hearing,
    *,
    after: PersonaState,
) -> tuple[Move, ...]:
    """The moves of a reply. `after` is the state after the turn as far as the agent's words decide it."""
    if after.annoyance >= temperament.patience:
        return (Move(Act.LEAVING),)
    if hearing.unclear:
        return (Move(Act.NOT_UNDERSTOOD),)
    answers = _answers(case, temperament, state, hearing)
    reactions = _reactions(case, state, turn, hearing)
    # Thanks for praise come at once, everything else after the answer.
    body = (*reactions, *answers) if _thanks(hearing, reactions) else (*answers, *reactions)
    closing = _closing(case, hearing, after, answers, reactions)
    if closing is not None:
        # Last words follow what was asked for and offered, but no small talk.
        said_before = _volunteered(case, state) if closing is Act.WAIT else ()
        return (*_fit(case, (*said_before, *body), MAX_SENTENCES - 1), Move(closing))
    manner = _manner(hearing)
    told_first = _volunteered(case, state)
    if not (body or manner or told_first):
        body = _small_talk(hearing)
    return _fit(case, (*manner, *told_first, *body), MAX_SENTENCES)


def _manner(hearing: Hearing) -> tuple[Move, ...]:
    if hearing.reading.rude:
        return (Move(Act.HURT),)
    return (Move(Act.TOO_MANY),) if hearing.reading.interrogation else ()


def _volunteered(case: CompiledCase, state: PersonaState) -> tuple[Move, ...]:
    """What the opening left out of the things the persona comes to say."""
    return tuple(Move(Act.VOLUNTEER, topic.id) for topic in case.volunteered if topic.id not in state.said)


def _answers(case: CompiledCase, temperament: Temperament, state: PersonaState, hearing: Hearing) -> tuple[Move, ...]:
    """Answers in the order asked, no more than the persona tells at once."""
    pressed = hearing.reading.rude or hearing.reading.interrogation
    limit = 1 if pressed else temperament.facts_per_turn
    told_first = {move.about for move in _volunteered(case, state)}
    moves = [_answer(case, state, asked) for asked in hearing.asked if asked.topic_id not in told_first]
    if pressed:
        # Of many questions the one that can be answered is.
        moves.sort(key=lambda move: move.act is not Act.TELL)
    kept = moves[:limit]
    if len(kept) < limit and hearing.unmatched and not any(m.act is Act.UNKNOWN for m in kept):
        kept.append(Move(Act.UNKNOWN))
    return tuple(_once(kept))


def _once(moves: list[Move]) -> list[Move]:
    """Two evasions of the same kind in one breath sound like a machine."""
    seen: set[Act] = set()
    kept: list[Move] = []
    for move in moves:
        if move.act in (Act.TELL, Act.VOLUNTEER) or move.act not in seen:
            kept.append(move)
        seen.add(move.act)
    return kept


def _answer(case: CompiledCase, state: PersonaState, asked: Asked) -> Move:
    topic = case.by_id[asked.topic_id]
    times = state.asked.get(topic.id, 0)
    if topic.tier is Tier.UNKNOWN:
        if times > 1:
            return Move(Act.TIRED, topic.id)
        return Move(Act.ANSWER if topic.answer and not times else Act.UNKNOWN, topic.id)
    if not asked.open:
        return Move(Act.PARTIAL if topic.partial and not times else Act.WITHHELD, topic.id)
    if topic.id not in state.said:
        return Move(Act.TELL, topic.id)
    return Move(Act.TIRED if times > 1 else Act.AGAIN, topic.id)


def _reactions(case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing) -> tuple[Move, ...]:
    """What the persona says to commitments and tool calls: one thing for each kind."""
    tool = next((t for t in turn.tools if case.tool_replies.get(t) and t not in state.tools), None)
    by_id = {commitment.id: commitment for commitment in case.commitments}
    for heard in hearing.commitments:
        commitment = by_id[heard.commitment_id]
        act, lines = (Act.REPLY_EARLY, commitment.reply_early) if heard.early else (Act.REPLY, commitment.reply)
        times = (state.early if heard.early else state.heard).get(commitment.id, 0)
        if times < len(lines):
            return (Move(act, commitment.id, times),)
    if tool is not None:
        return (Move(Act.TOOL_REPLY, tool),)
    silent = not hearing.asked and not hearing.unmatched
    return (Move(Act.FOLLOWING),) if silent and (hearing.commitments or turn.tools) else ()


def _thanks(hearing: Hearing, reactions: tuple[Move, ...]) -> bool:
    """Whether what the persona reacts to is kindness."""
    kind = {heard.commitment_id for heard in hearing.commitments if heard.quote in hearing.reading.empathy}
    return any(move.act is Act.REPLY and move.about in kind for move in reactions)


def _closing(
    case: CompiledCase, hearing: Hearing, after: PersonaState, answers: tuple[Move, ...], reactions: tuple[Move, ...]
) -> Act | None:
    """Whether and how the talk comes to its end: by state, never by a phrase alone."""
    if hearing.reading.farewell:
        if after.goals_met is not None or not case.goals:
            return Act.FAREWELL
        return Act.PARTING if after.farewells > 1 else Act.WAIT
    if after.goals_met is None or after.goals_met == after.turn:
        return None
    answering = any(move.act in (Act.TELL, Act.PARTIAL, Act.WITHHELD, Act.AGAIN) for move in answers)
    return None if answering or any(move.act is Act.REPLY for move in reactions) else Act.FAREWELL


def _small_talk(hearing: Hearing) -> tuple[Move, ...]:
    if hearing.reading.check_ins:
        return (Move(Act.FOLLOWING),)
    return (Move(Act.WARMED if hearing.empathy else Act.NUDGE),)


_REACTIONS = frozenset({Act.REPLY, Act.REPLY_EARLY, Act.TOOL_REPLY})
_RANK = {Act.VOLUNTEER: 0, Act.HURT: 1, Act.TOO_MANY: 1, Act.REPLY: 2, Act.REPLY_EARLY: 2, Act.TOOL_REPLY: 2}


def _fit(case: CompiledCase, moves: tuple[Move, ...], budget: int) -> tuple[Move, ...]:
    """Drops the least important moves until the reply is short; the first answer always stays."""
    first = next((m for m in moves if m.act is Act.TELL), moves[0] if moves else None)
    reaction = next((m for m in moves if m.act in _REACTIONS), None)
    if first is not None and reaction is not None:
        both = sum(_sentences(case, move) for move in {first, reaction})
        budget = max(budget, min(both, budget + MAX_WITH_REACTION - MAX_SENTENCES))
    kept: set[Move] = set()
    for move in sorted(moves, key=lambda m: -1 if m is first else _RANK.get(m.act, 3)):
        length = _sentences(case, move)
        if not kept or length <= budget:
            kept.add(move)
            budget -= length
    return tuple(move for move in moves if move in kept)


def _sentences(case: CompiledCase, move: Move) -> int:
    """How long a move will be at most."""
    topic = case.by_id.get(move.about)
    if topic is not None and move.act in (Act.TELL, Act.VOLUNTEER, Act.AGAIN):
        return topic.length + (move.act is Act.AGAIN)
    if move.act in (Act.REPLY, Act.REPLY_EARLY):
        return next(c.length for c in case.commitments if c.id == move.about)
    return 1
