"""Decides what a persona does in answer to a turn, before any word is chosen.

The result is a short list of moves in the order they will be spoken. Only `TELL`, `VOLUNTEER` and `AGAIN`
carry the content of a fact, and only for facts that may be told now; everything else is manner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from personas.amounts import amounts
from personas.case import Tier, named_in
from personas.compiled import CompiledCase, CompiledCommitment
from personas.hearing import UNSURE, AgentTurn, Asked, Hearing, gate_open
from personas.reading.acts import Act, Sentence, Stance
from personas.state import PersonaState
from personas.temperament import Temperament

MAX_SENTENCES = 4
MAX_WITH_REACTION = 6
"""A promise heard beside a question is not passed over: the reaction to it may make the reply this long."""


class Kind(StrEnum):
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
    ASKS_BACK = "asks_back"  # two topics may be meant
    ALL_TOLD = "all_told"  # an open invitation, and nothing is left to tell
    REPLY = "reply"
    REPLY_EARLY = "reply_early"
    TOOL_REPLY = "tool_reply"
    AGREES = "agrees"  # to a proposal that the case says nothing about
    HESITATES = "hesitates"
    CONSENTS = "consents"
    CONFIRMS = "confirms"  # what the agent repeats of it
    FOLLOWING = "following"
    NO_RUSH = "no_rush"
    GREETS = "greets"
    CHATS = "chats"
    WELCOMES = "welcomes"  # thanks and praise
    WARMED = "warmed"
    NUDGE = "nudge"
    WAIT = "wait"
    FAREWELL = "farewell"
    PARTING = "parting"  # the agent ends the talk with nothing settled
    LEAVING = "leaving"


_TELLING = frozenset({Kind.TELL, Kind.VOLUNTEER})
_LAST_WORDS = frozenset({Kind.FAREWELL, Kind.PARTING, Kind.LEAVING})
_FACTUAL = frozenset({Kind.TELL, Kind.AGAIN, Kind.PARTIAL, Kind.WITHHELD, Kind.CONFIRMS, Kind.ASKS_BACK})
_COMPLIANT = frozenset({Kind.AGREES, Kind.HESITATES, Kind.FOLLOWING, Kind.UNKNOWN})
_REACTIONS = frozenset({Kind.REPLY, Kind.REPLY_EARLY, Kind.TOOL_REPLY})


@dataclass(frozen=True, slots=True)
class Move:
    """A kind and what it is about: a topic, a commitment or a tool."""

    kind: Kind
    about: str = ""
    other: str = ""
    """Where it asks back between two topics: the second."""
    nth: int = 0
    """How often the same was answered before."""
    plain: bool = False
    """Said at once, without a small word before it."""


def disclosed(moves: Iterable[Move]) -> tuple[str, ...]:
    """The topics that the moves say for the first time."""
    return tuple(move.about for move in moves if move.kind in _TELLING)


def ends(moves: Iterable[Move]) -> bool:
    """Whether the persona ends the conversation with these moves."""
    return any(move.kind in _LAST_WORDS for move in moves)


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
    reactions = _reactions(case, state, turn, hearing, answers)
    if any(move.kind in (Kind.REPLY, Kind.REPLY_EARLY) for move in reactions):
        # An offer names again what the persona has told: that is no question.
        answers = tuple(move for move in answers if not (move.kind is Kind.AGAIN and move.plain))
    # Thanks for kindness come at once, everything else after the answer.
    body = (*reactions, *answers) if _thanks(hearing, reactions) else (*answers, *reactions)
    closing = _closing(case, state, hearing, after, body)
    if closing is not None:
        # Last words follow what was asked for and offered, but no small talk.
        said_before = told_first if closing is Kind.WAIT else ()
        meant = tuple(move for move in body if move.kind not in _COMPLIANT)
        return (*_fit(case, (*said_before, *meant), MAX_SENTENCES - 1), Move(closing))
    manner = _manner(hearing)
    # The answer to an invitation, and to a greeting, is what it came to say.
    small = () if body or manner or (told_first and hearing.invites) else _small_talk(case, temperament, state, hearing)
    if told_first:
        small = tuple(move for move in small if move.kind in (Kind.GREETS, Kind.WARMED, Kind.CONSENTS))
    return _fit(case, (*manner, *small, *told_first, *body), MAX_SENTENCES)


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
    limit = 1 if pressed else temperament.facts_per_turn
    told_first = {move.about for move in _volunteered(case, state)}
    moves = [_answer(case, state, hearing, asked) for asked in hearing.asked if asked.topic_id not in told_first]
    if pressed:
        # Of many questions the one that can be answered is.
        moves.sort(key=lambda move: move.kind is not Kind.TELL)
    if hearing.unsure is not None and not hearing.commitments:
        one, other = hearing.unsure
        # Of two things it has told, it says the likelier one again: that answers a recap as well as a question.
        told = one in state.said and other in state.said
        return (
            Move(Kind.AGAIN, one, nth=state.asked.get(one, 0), plain=True)
            if told
            else _asks_back(case, temperament, state, hearing.rapport, one, other),
        )
    kept = moves[:limit]
    return tuple(_once(kept)) if kept else (Move(Kind.UNKNOWN),) if _is_stumped(hearing) else ()


def _once(moves: Iterable[Move]) -> Iterator[Move]:
    """Two evasions of the same kind in one breath sound like a machine."""
    seen: set[Kind] = set()
    for move in moves:
        if move.kind in _TELLING or move.kind not in seen:
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
    if any(s.does(Act.RECAP, Act.CHECK) for s in _saying(hearing, asked.question)):
        return Move(Kind.CONFIRMS)
    if asked.repeated and times > 1:
        return Move(Kind.TIRED, asked.topic_id)
    return Move(Kind.AGAIN, asked.topic_id, nth=times, plain=not asked.repeated)


def _saying(hearing: Hearing, text: str) -> tuple[Sentence, ...]:
    return tuple(sentence for sentence in hearing.reading.readable if sentence.text == text)


def _asks_back(case: CompiledCase, temperament: Temperament, state: PersonaState, rapport: float, *ids: str) -> Move:
    """Names what it may be about, unless a name would give away that there is something to find out."""
    topics = [case.by_id[name] for name in ids]
    named = all(t.label and gate_open(t, state, rapport, temperament.reserve) for t in topics)
    about, other = (*ids, "", "")[:2] if named else ("", "")
    return Move(Kind.ASKS_BACK, about, other)


_NO_QUESTION = (Act.PROPOSE, Act.SOCIAL, Act.PROCESS, Act.RECAP, Act.GREET, Act.EMPATHY)
"""What also does this is answered as such: "Shall I book these?" asks for a yes, not for knowledge."""


def _is_stumped(hearing: Hearing) -> bool:
    """Whether it is asked something it knows nothing about, and nothing else."""
    if hearing.asked or hearing.commitments or any(s.topics[0].confidence >= UNSURE for s in _vague(hearing)):
        return False
    strays = [s for s in _strays(hearing) if not s.does(*_NO_QUESTION) and not s.commitments]
    # "I could send it. Does that sound useful?" is one thing; a question of its own has a likeness to something.
    return any(s.topics or not hearing.proposal for s in strays)


def _vague(hearing: Hearing) -> list[Sentence]:
    """Questions that may be about something in the case."""
    questions = [s for s in hearing.reading.readable if s.does(Act.ASK) and not s.does(Act.CHECK, *_NO_QUESTION)]
    return [s for s in questions if s.topics]


def _strays(hearing: Hearing) -> tuple[Sentence, ...]:
    """The questions about things the case does not hold."""
    return tuple(s for s in hearing.reading.readable if s.text in hearing.unmatched)


# --- reactions to what the agent offers --------------------------------------------------------------------


def _reactions(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing, answers: tuple[Move, ...]
) -> tuple[Move, ...]:
    """What the persona says to commitments, proposals and tool calls: one thing for each kind."""
    by_id = {commitment.id: commitment for commitment in case.commitments}
    telling = disclosed(answers)
    for heard in hearing.commitments:
        commitment = by_id[heard.commitment_id]
        if heard.early and not set(telling).isdisjoint(named_in(commitment.after)):
            # It was asked in the same breath: nobody can say that it was not.
            continue
        kind, lines = (Kind.REPLY_EARLY, commitment.reply_early) if heard.early else (Kind.REPLY, commitment.reply)
        times = (state.early if heard.early else state.heard).get(commitment.id, 0)
        if times < len(lines):
            return (Move(kind, commitment.id, nth=times),)
    tool = next((t for t in turn.tools if case.tool_replies.get(t) and t not in state.tools), None)
    if tool is not None:
        return (Move(Kind.TOOL_REPLY, tool),)
    return () if answers else _to_proposals(case, turn, hearing)


def _to_proposals(case: CompiledCase, turn: AgentTurn, hearing: Hearing) -> tuple[Move, ...]:
    """What it says where the case has no answer: a plausible yes, or time to think."""
    if hearing.commitments:
        return (Move(Kind.AGREES),)
    if hearing.proposal and not _asks_after_proposing(hearing):
        return (Move(Kind.HESITATES if _calls_for_thought(case, hearing) else Kind.AGREES),)
    if any(s.commitments for s in _strays(hearing)):
        # "What if you kept it for another week?" is half an offer.
        return (Move(Kind.HESITATES),)
    return (Move(Kind.FOLLOWING),) if turn.tools and not hearing.reading.sentences else ()


def _asks_after_proposing(hearing: Hearing) -> bool:
    """Whether its last word is a question that may be about something in the case."""
    last = next(s for s in reversed(hearing.reading.readable) if s.does(Act.PROPOSE, Act.ASK))
    return last in _vague(hearing) and last.topics[0].confidence >= UNSURE


def _calls_for_thought(case: CompiledCase, hearing: Hearing) -> bool:
    """Whether a proposal is one that nobody says yes to at once: a choice, or a figure where people haggle."""
    proposed = [s for s in hearing.reading.readable if s.does(Act.PROPOSE)]
    haggles = any(commitment.amount is not None for commitment in case.commitments)
    return any(
        s.stance is Stance.OPTION or ((haggles or s.stance is Stance.ASKED) and bool(amounts(s.text))) for s in proposed
    )


def _thanks(hearing: Hearing, reactions: tuple[Move, ...]) -> bool:
    """Whether what the persona reacts to is kindness."""
    kind = {
        heard.commitment_id
        for heard in hearing.commitments
        if any(s.does(Act.EMPATHY, Act.COURTESY) for s in _saying(hearing, heard.quote))
    }
    return any(move.kind is Kind.REPLY and move.about in kind for move in reactions)


# --- the end of the talk, and all that is about nothing in particular ---------------------------------------


def _closing(
    case: CompiledCase, state: PersonaState, hearing: Hearing, after: PersonaState, body: tuple[Move, ...]
) -> Kind | None:
    """Whether and how the talk comes to its end."""
    if hearing.farewell:
        if after.goals_met is not None or not case.goals:
            return Kind.FAREWELL
        return Kind.PARTING if after.farewells > 1 else Kind.WAIT
    if state.goals_met is None:
        return None
    busy = (
        any(move.kind in _FACTUAL | {Kind.REPLY, Kind.AGREES, Kind.HESITATES} for move in body)
        or hearing.checks_in
        or hearing.empathy is not None
        or hearing.reading.any(Act.PROCESS)
        or hearing.rude
    )
    return None if busy else Kind.FAREWELL


def _small_talk(
    case: CompiledCase, temperament: Temperament, state: PersonaState, hearing: Hearing
) -> tuple[Move, ...]:
    """A fitting line where nothing was asked and nothing offered that the case has an answer to."""
    read = hearing.reading
    first = (Move(Kind.GREETS),) if read.any(Act.GREET) and state.turn == 0 else ()
    if hearing.invites:
        return (Move(Kind.ALL_TOLD),)
    asked_for = [
        *_vaguely_asked(case, temperament, state, hearing),
        *((Move(Kind.CONSENTS),) if hearing.checks_in else ()),
    ]
    if read.any(Act.EMPATHY):
        return (Move(Kind.WARMED), *asked_for[:1])
    if asked_for and not (first and asked_for[0].kind is Kind.ASKS_BACK):
        return (*first, asked_for[0])
    for act, kind in (
        (Act.RECAP, Kind.CONFIRMS),
        (Act.PROCESS, Kind.NO_RUSH),
        (Act.INFORM, Kind.FOLLOWING),
        (Act.PROPOSE, Kind.FOLLOWING),
        (Act.SOCIAL, Kind.CHATS),
    ):
        if read.any(act):
            return first if first and kind is Kind.FOLLOWING else (*first, Move(kind))
    if first:
        return first
    fallback = Kind.WELCOMES if read.any(Act.COURTESY) else Kind.FOLLOWING
    # The persona takes up its own matter again only where the agent has nothing to say for the second time.
    return (Move(Kind.NUDGE),) if state.idle else (Move(fallback),)


def _vaguely_asked(
    case: CompiledCase, temperament: Temperament, state: PersonaState, hearing: Hearing
) -> tuple[Move, ...]:
    """Asks back what the last question is about that may be about something."""
    vague = _vague(hearing)
    likely = vague[-1].topics[0].id if vague else None
    return () if likely is None else (_asks_back(case, temperament, state, hearing.rapport, likely),)


# --- length ------------------------------------------------------------------------------------------------


_RANK = {Kind.VOLUNTEER: 0, Kind.HURT: 1, Kind.TOO_MANY: 1, Kind.REPLY: 2, Kind.REPLY_EARLY: 2, Kind.TOOL_REPLY: 2}


def _fit(case: CompiledCase, moves: tuple[Move, ...], budget: int) -> tuple[Move, ...]:
    """Drops the least important moves until the reply is short; the first answer always stays."""
    first = next((m for m in moves if m.kind is Kind.TELL), moves[0] if moves else None)
    reaction = next((m for m in moves if m.kind in _REACTIONS), None)
    by_id = {commitment.id: commitment for commitment in case.commitments}
    if first is not None and reaction is not None:
        both = sum(_sentences(case, by_id, move) for move in {first, reaction})
        budget = max(budget, min(both, budget + MAX_WITH_REACTION - MAX_SENTENCES))
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
