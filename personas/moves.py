"""Decides what a persona does in answer to a turn, before any word is chosen.

The result is a short list of moves in the order they will be spoken. Only `TELL`, `VOLUNTEER` and `AGAIN`
carry the content of a fact, and only for facts that may be told now; everything else is manner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from personas.case import Tier
from personas.compiled import CompiledCase, CompiledCommitment
from personas.heard import NO_QUESTION, AgentTurn, Asked, Hearing
from personas.hearing import UNSURE
from personas.move import COMPLIANT, REACTIONS, TELLING, Kind, Move
from personas.reactions import asks_back, closing_of, reactions_to, small_talk, thanks
from personas.reading.acts import Act
from personas.state import PersonaState
from personas.temperament import Temperament

MAX_SENTENCES = 4
MAX_AT_LENGTH = 6
"""A promise heard beside a question is not passed over: the reaction to it may make the reply this long."""


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
        return (Move(Kind.LEAVING),)
    if hearing.unclear:
        return (Move(Kind.HURT if hearing.rude else Kind.NOT_UNDERSTOOD),)
    told_first = _volunteered(case, state)
    answers = _answers(case, temperament, state, hearing)
    reactions = reactions_to(case, state, turn, hearing, answers)
    if any(move.kind in (Kind.REPLY, Kind.REPLY_EARLY) for move in reactions):
        # An offer names again what the persona has told: that is no question.
        answers = tuple(move for move in answers if not (move.kind is Kind.AGAIN and move.plain))
    # Thanks for kindness come at once, everything else after the answer.
    body = (*reactions, *answers) if thanks(hearing, reactions) else (*answers, *reactions)
    closing = closing_of(case, state, hearing, after, body)
    if closing is not None:
        # Last words follow what was asked for and offered, but no small talk.
        said_before = told_first if closing is Kind.WAIT else ()
        meant = tuple(move for move in body if move.kind not in COMPLIANT)
        return (*_fit(case, (*said_before, *meant), MAX_SENTENCES - 1), Move(closing))
    manner = _manner(hearing)
    # The answer to an invitation, and to a greeting, is what it came to say.
    small = () if body or manner or (told_first and hearing.invites) else small_talk(case, temperament, state, hearing)
    if told_first:
        small = tuple(move for move in small if move.kind in (Kind.GREETS, Kind.WARMED, Kind.CONSENTS))
    # Who opens up says more than who only answers.
    return _fit(case, (*manner, *small, *told_first, *body), MAX_AT_LENGTH if hearing.opens_up else MAX_SENTENCES)


def _manner(hearing: Hearing) -> tuple[Move, ...]:
    if hearing.rude:
        return (Move(Kind.HURT),)
    return (Move(Kind.TOO_MANY),) if hearing.interrogation else ()


def _volunteered(case: CompiledCase, state: PersonaState) -> tuple[Move, ...]:
    """What the opening left out of the things the persona comes to say."""
    return tuple(Move(Kind.VOLUNTEER, topic.id) for topic in case.volunteered if topic.id not in state.said)


# --- answers to questions and invitations ------------------------------------------------------------------


def _answers(case: CompiledCase, temperament: Temperament, state: PersonaState, hearing: Hearing) -> tuple[Move, ...]:
    """Answers in the order asked, no more than the persona tells at once."""
    pressed = hearing.rude or hearing.interrogation
    limit = 1 if pressed else temperament.facts_per_turn + hearing.opens_up
    told_first = {move.about for move in _volunteered(case, state)}
    moves = [_answer(case, state, hearing, asked) for asked in hearing.asked if asked.topic_id not in told_first]
    if pressed:
        # Of many questions the one that can be answered is.
        moves.sort(key=lambda move: move.kind is not Kind.TELL)
    if hearing.unsure is not None and not hearing.answered:
        one, other = hearing.unsure
        # Of two things it has told, it says the likelier one again: that answers a recap as well as a question.
        told = one in state.said and other in state.said
        return (
            Move(Kind.AGAIN, one, nth=state.asked.get(one, 0), plain=True)
            if told
            else asks_back(case, temperament, state, hearing.rapport, one, other),
        )
    kept = moves[:limit]
    return tuple(_once(kept)) if kept else (Move(Kind.UNKNOWN),) if _is_stumped(hearing) else ()


def _once(moves: Iterable[Move]) -> Iterator[Move]:
    """Two evasions of the same kind in one breath sound like a machine."""
    seen: set[Kind] = set()
    for move in moves:
        if move.kind in TELLING or move.kind not in seen:
            yield move
        seen.add(move.kind)


def _answer(case: CompiledCase, state: PersonaState, hearing: Hearing, asked: Asked) -> Move:
    topic = case.by_id[asked.topic_id]
    times = state.asked.get(topic.id, 0)
    if topic.tier is Tier.UNKNOWN:
        kind = Kind.TIRED if times > 1 else Kind.ANSWER if topic.answer and not times else Kind.UNKNOWN
        return Move(kind, topic.id)
    if not asked.open:
        # A second time, what is private is refused, and what only comes later is put off again.
        private = times > 0 and topic.tier is Tier.RAPPORT
        return Move(Kind.PARTIAL if topic.partial and not private else Kind.WITHHELD, topic.id, nth=times)
    if topic.id not in state.said:
        # Nothing is led in by a small word that is told in trust or in an hour of need.
        trusting = topic.tier is Tier.RAPPORT or hearing.rapport > 0 or hearing.reading.any(Act.EMPATHY)
        return Move(Kind.TELL, topic.id, plain=trusting)
    return _told_before(hearing, asked, times)


def _told_before(hearing: Hearing, asked: Asked, times: int) -> Move:
    if any(s.does(Act.RECAP, Act.CHECK) for s in hearing.saying(asked.question)):
        return Move(Kind.CONFIRMS)
    if asked.repeated and times > 1:
        return Move(Kind.TIRED, asked.topic_id)
    return Move(Kind.AGAIN, asked.topic_id, nth=times, plain=not asked.repeated)


def _is_stumped(hearing: Hearing) -> bool:
    """Whether it is asked something it knows nothing about, and nothing else."""
    if hearing.asked or hearing.answered or any(s.topics[0].confidence >= UNSURE for s in hearing.vague):
        return False
    strays = [s for s in hearing.strays if not s.does(*NO_QUESTION) and not s.commitments]
    # "I could send it. Does that sound useful?" is one thing; a question of its own has a likeness to something.
    return any(s.topics or not hearing.proposal for s in strays)


# --- length ------------------------------------------------------------------------------------------------


_RANK = {Kind.VOLUNTEER: 0, Kind.HURT: 1, Kind.TOO_MANY: 1, Kind.REPLY: 2, Kind.REPLY_EARLY: 2, Kind.TOOL_REPLY: 2}


def _fit(case: CompiledCase, moves: tuple[Move, ...], budget: int) -> tuple[Move, ...]:
    """Drops the least important moves until the reply is short; the first answer always stays."""
    first = next((m for m in moves if m.kind is Kind.TELL), moves[0] if moves else None)
    reaction = next((m for m in moves if m.kind in REACTIONS), None)
    by_id = {commitment.id: commitment for commitment in case.commitments}
    if first is not None and reaction is not None:
        both = sum(_sentences(case, by_id, move) for move in {first, reaction})
        budget = max(budget, min(both, budget + MAX_AT_LENGTH - MAX_SENTENCES))
    kept: set[Move] = set()
    for move in sorted(moves, key=lambda m: -1 if m is first else _RANK.get(m.kind, 3)):
        length = _sentences(case, by_id, move)
        if not kept or length <= budget:
            kept.add(move)
            budget -= length
    return tuple(move for move in moves if move in kept)


def _sentences(case: CompiledCase, commitments: dict[str, CompiledCommitment], move: Move) -> int:
    """How long a move will be at most."""
    topic = case.by_id.get(move.about)
    if topic is not None and move.kind in (Kind.TELL, Kind.VOLUNTEER, Kind.AGAIN):
        return topic.length + (move.kind is Kind.AGAIN)
    if move.kind in (Kind.REPLY, Kind.REPLY_EARLY):
        return commitments[move.about].length
    return 1
