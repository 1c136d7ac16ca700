"""Reactions of a persona to what is offered, and where nothing was asked: to promises, small talk, goodbyes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from personas.case.compiled import CompiledCase
from personas.case.schema import named_in
from personas.hearing.amounts import amounts
from personas.hearing.bargaining import NOD_WORDS, AmountAnswer, figure_of
from personas.hearing.hear import LIKELY_MADE, UNSURE
from personas.hearing.state import PersonaState
from personas.hearing.types import NO_QUESTION, AgentTurn, HeardCommitment, Hearing
from personas.play.move import FACTUAL, FIGURES, REACTIONS, Move, MoveKind, disclosed
from personas.play.voice import digest_of
from personas.reading.acts import Act, Sentence, Stance, is_question
from personas.reading.features import is_elliptic
from personas.text.questions import QuestionForm, form_of
from personas.text.wording import content_stems

OFFERED = (Stance.ASKED, Stance.OPTION)
"""So a question puts what it may promise."""
BEYOND_DOUBT = 0.9
"""So clear a promise is answered, whatever else its sentence may promise."""


def asks_back(state: PersonaState) -> Move:
    """Asks what is meant, once in a talk, and without naming what it may be."""
    return Move(MoveKind.UNKNOWN if state.conversation.asked_back else MoveKind.ASKS_BACK)


# --- reactions to what the agent offers --------------------------------------------------------------------


def reactions_to(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing, answers: tuple[Move, ...]
) -> tuple[Move, ...]:
    """React to commitments, proposals and tool calls: one thing for each kind."""
    if hearing.dealing is not None:
        return _to_figure(case, state, turn, hearing, answers)
    haggles = (Move(MoveKind.HESITATES),) if hearing.haggles is not None and not answers else ()
    taken = tuple(_to_promises(case, state, turn, hearing, answers, haggles=bool(haggles)))
    for reply in (move for move in taken if move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY)):
        # A yes and a doubt in one breath would take each other back.
        return (reply,)
    tool = next((t for t in turn.tools if case.tool_replies.get(t) and t not in state.tools), None)
    if tool is not None and not answers:
        return (Move(MoveKind.TOOL_REPLY, tool),)
    if taken and not answers:
        return haggles or taken[:1]
    passes = bool(answers) and not (answers == (Move(MoveKind.UNKNOWN),) and proposes_last(hearing))
    return haggles or (() if passes else _to_proposals(case, turn, hearing))


def proposes_last(hearing: Hearing) -> bool:
    """True if the turn ends by asking for a yes to what it proposes."""
    last = hearing.reading.readable[-1:]
    return bool(last) and last[0].does(Act.PROPOSE) and is_question(last[0])


def _to_figure(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing, answers: tuple[Move, ...]
) -> tuple[Move, ...]:
    """Yes, no or a figure of its own, in the author's words where there are any left for it."""
    dealing, bargain = hearing.dealing, case.bargain
    if dealing is None or bargain is None:
        return ()
    replies = [m for m in _to_promises(case, state, turn, hearing, answers, haggles=False) if m.kind in REACTIONS]
    own = next((move for move in replies if move.about == bargain.closes), None)
    other = tuple(move for move in replies if move is not own)[:1]
    figure = figure_of(bargain, dealing.amount)
    if dealing.answer is AmountAnswer.EARLY:
        return (own,) if own is not None else (Move(MoveKind.COUNTERS, figure=figure),)
    if dealing.answer is AmountAnswer.TAKES:
        return (own or Move(MoveKind.TAKES, figure=figure), *other)
    if dealing.answer is AmountAnswer.COUNTERS and any(
        move.about in bargain.figures for move in answers if move.kind is MoveKind.TELL
    ):
        # It has just named its limit.
        return other
    return (*other, Move(MoveKind(dealing.answer.value), figure=figure))


def _to_promises(
    case: CompiledCase,
    state: PersonaState,
    turn: AgentTurn,
    hearing: Hearing,
    answers: tuple[Move, ...],
    *,
    haggles: bool,
) -> Iterator[Move]:
    """React to each promise, if at all: with a reply that was not given before, or else a nod."""
    by_id = {commitment.id: commitment for commitment in case.commitments}
    telling = disclosed(answers)

    def order(heard: HeardCommitment) -> tuple[int, bool, float]:
        # What was not answered before comes first: a figure in a proposal that repeats the rest of it.
        return state.heard.get(heard.commitment_id, 0), heard.commitment_id not in case.came_for, -heard.confidence

    for heard in sorted(hearing.answered, key=order):
        commitment = by_id[heard.commitment_id]
        if _is_doubtful(case, hearing, heard):
            continue
        kind, lines = (
            (MoveKind.REPLY_EARLY, commitment.reply_early) if heard.early else (MoveKind.REPLY, commitment.reply)
        )
        if heard.early and (haggles or not set(telling).isdisjoint(named_in(commitment.after))):
            # The figure is what it has to answer. Or it was asked in the same breath: nobody can say that it was not.
            continue
        left = [line for line in lines if digest_of(line) not in state.lines]
        nod = _nod(case, hearing, heard) if len(left) < len(lines) else None
        if nod is not None:
            # What it came for, or praise, was answered before: to hear it again calls for no new surprise.
            yield nod
        elif left:
            yield Move(kind, commitment.id, heard=turn.text)
        elif lines and heard.early:
            yield Move(MoveKind.HESITATES)


def _is_doubtful(case: CompiledCase, hearing: Hearing, heard: HeardCommitment) -> bool:
    """True if the sentence may as well promise something else: the answer to this would be the wrong one."""
    rivals = [c for s in hearing.saying(heard.quote) for c in s.commitments if c.id != heard.commitment_id]
    if any(each.confidence > heard.confidence for each in rivals) and not heard.taken:
        return True
    if heard.commitment_id in case.came_for or heard.confidence >= BEYOND_DOUBT:
        return False
    return 2 * max((c.confidence for c in rivals if c.id in case.came_for), default=0.0) >= heard.confidence


def _nod(case: CompiledCase, hearing: Hearing, heard: HeardCommitment) -> Move | None:
    """React to a promise that it has answered before, where it is welcome; others it answers in other words."""
    if heard.early:
        return None
    if any(s.does(Act.EMPATHY, Act.COURTESY) for s in hearing.saying(heard.quote)):
        return Move(MoveKind.WARMED)
    return Move(MoveKind.AGREES) if any(heard.commitment_id in group for group in case.goals) else None


def _to_proposals(case: CompiledCase, turn: AgentTurn, hearing: Hearing) -> tuple[Move, ...]:
    """React where the case has no answer: with a plausible yes, or by taking time to think."""
    if hearing.answered:
        # A yes to what may have been refused would be worse than time to think.
        doubtful = all(_is_doubtful(case, hearing, heard) for heard in hearing.answered)
        return (Move(MoveKind.HESITATES if doubtful else MoveKind.AGREES),)
    if hearing.proposal and not _asks_after_proposing(hearing):
        return (Move(_taken(case, hearing)),)
    half = (*hearing.strays, *(s for s in hearing.vague if s.stance in OFFERED))
    if any(each.confidence >= LIKELY_MADE for s in half for each in s.commitments[:1]):
        # "What if you kept it for another week?" is half an offer.
        return (Move(MoveKind.HESITATES),)
    return (Move(MoveKind.FOLLOWING),) if turn.tools and not hearing.reading.sentences else ()


def _asks_after_proposing(hearing: Hearing) -> bool:
    """True if its last word is a question that may be about something in the case."""
    last = next(s for s in reversed(hearing.reading.readable) if s.does(Act.PROPOSE, Act.ASK))
    return last in hearing.vague and last.topics[0].confidence >= UNSURE


def is_choice(sentence: Sentence) -> bool:
    """True if it leaves a choice to the persona ("Shall I ring, or would you rather write?")."""
    return sentence.stance is Stance.OPTION and is_question(sentence)


def _taken(case: CompiledCase, hearing: Hearing) -> MoveKind:
    """Take a proposal: nobody says yes at once to a figure where people haggle, or to a choice."""
    proposed = [s for s in hearing.reading.readable if s.does(Act.PROPOSE)]
    haggles = any(commitment.amount is not None for commitment in case.commitments)
    if any((haggles or s.stance is Stance.ASKED) and bool(amounts(s.text)) for s in proposed):
        return MoveKind.HESITATES
    if is_choice(proposed[-1]) or form_of(proposed[-1].text) is QuestionForm.CHOICE:
        return MoveKind.EITHER
    return MoveKind.HESITATES if any(s.stance is Stance.OPTION for s in proposed) else MoveKind.AGREES


def left_open(case: CompiledCase, hearing: Hearing, reactions: tuple[Move, ...]) -> tuple[Move, ...]:
    """React to the question that ends the turn and that nothing answers: to a proposal, or that it cannot tell."""
    last = hearing.reading.readable[-1:]
    if not last or last[0].text in {asked.question for asked in hearing.asked}:
        return ()
    if proposes_last(hearing) and len(content_stems(last[0].text)) > NOD_WORDS:
        # A promise that is answered does not answer what is proposed behind it ("Would you send me both?").
        promised = any(move.kind is MoveKind.REPLY for move in reactions)
        other = last[0].text not in {heard.quote for heard in hearing.answered}
        taken = _taken(case, hearing)
        # A yes and a doubt in one breath would take each other back.
        return (Move(taken),) if promised and other and taken is not MoveKind.HESITATES else ()
    # "How does that sound?" is about the offer that the persona reacts to.
    own = not is_elliptic(last[0].text) and not last[0].does(*NO_QUESTION) and not last[0].commitments
    if not own or last[0] not in (*hearing.vague, *hearing.strays):
        return ()
    return (Move(MoveKind.EITHER if is_choice(last[0]) else MoveKind.UNKNOWN),)


def thanks(hearing: Hearing, reactions: tuple[Move, ...]) -> bool:
    """True if what the persona reacts to is kindness."""
    kind = {
        commitment.commitment_id
        for commitment in hearing.commitments
        if any(s.does(Act.EMPATHY, Act.COURTESY) for s in hearing.saying(commitment.quote))
    }
    return any(move.kind is MoveKind.REPLY and move.about in kind for move in reactions)


def comes_first(hearing: Hearing, reactions: tuple[Move, ...], questions: Iterable[str]) -> bool:
    """True if what the persona reacts to was said before everything that it was asked."""
    places = {sentence.text: place for place, sentence in reversed(list(enumerate(hearing.reading.readable)))}
    made = {heard.commitment_id: places.get(heard.quote) for heard in hearing.commitments}
    reacted = [made.get(move.about) for move in reactions if move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY)]
    asked = [places[question] for question in questions if question in places]
    return bool(asked) and any(place is not None and place < min(asked) for place in reacted)


# --- the end of the talk, and all that is about nothing in particular ---------------------------------------


def closing_of(
    case: CompiledCase, state: PersonaState, hearing: Hearing, after: PersonaState, body: tuple[Move, ...]
) -> MoveKind | None:
    """The move that ends the talk, if it comes to its end."""
    if hearing.farewell:
        if after.goals_met is not None or not case.goals:
            return MoveKind.FAREWELL
        if after.commitments:
            return MoveKind.GOODBYE
        return MoveKind.PARTING if after.farewells > 1 else MoveKind.WAIT
    if state.goals_met is None:
        return None
    answering = FACTUAL | FIGURES | {MoveKind.REPLY, MoveKind.AGREES, MoveKind.HESITATES, MoveKind.EITHER}
    lets_go = {entry.id for entry in case.asides.values() if entry.ends}
    parting = any(move.about in lets_go for move in body)
    asking = (*hearing.vague, *hearing.strays)
    busy = (
        any(move.kind in answering and move.about not in lets_go for move in body)
        or hearing.checks_in
        or hearing.empathy is not None
        or hearing.reading.any(Act.PROCESS)
        or hearing.rude
        # "Is there anything else?" lets it go; a question with a matter of its own waits for an answer.
        or (not parting and any(content_stems(s.text) and not s.does(Act.INVITE) for s in asking))
    )
    return None if busy else MoveKind.FAREWELL


def small_talk(state: PersonaState, hearing: Hearing) -> tuple[Move, ...]:
    """A fitting line where nothing was asked and nothing offered that the case has an answer to."""
    read = hearing.reading
    first = (Move(MoveKind.GREETS),) if read.any(Act.GREET) and state.turn == 0 else ()
    if hearing.invites:
        return (Move(MoveKind.ALL_TOLD),)
    asked_for = [
        *_vaguely_asked(state, hearing),
        *((Move(MoveKind.CONSENTS),) if hearing.checks_in else ()),
    ]
    if read.any(Act.EMPATHY):
        return (Move(MoveKind.WARMED), *asked_for[:1])
    if asked_for and not (first and asked_for[0].kind is MoveKind.ASKS_BACK):
        return (*first, asked_for[0])
    for act, kind in (
        (Act.RECAP, MoveKind.CONFIRMS),
        (Act.PROCESS, MoveKind.NO_RUSH),
        (Act.INFORM, MoveKind.FOLLOWING),
        (Act.PROPOSE, MoveKind.FOLLOWING),
        (Act.SOCIAL, MoveKind.CHATS),
    ):
        if read.any(act):
            return first if first and kind is MoveKind.FOLLOWING else (*first, Move(_agreeing(hearing, kind)))
    if first:
        return first
    fallback = MoveKind.WELCOMES if read.any(Act.COURTESY) else _agreeing(hearing, MoveKind.FOLLOWING)
    # The persona takes up its own matter again only where the agent has nothing to say for the second time.
    return (Move(MoveKind.NUDGE),) if state.idle else (Move(fallback),)


def _agreeing(hearing: Hearing, kind: MoveKind) -> MoveKind:
    """A yes where the turn ends with a question that wants nothing told ("Does that still stand?")."""
    last = hearing.reading.readable[-1:]
    return MoveKind.CONSENTS if kind is MoveKind.FOLLOWING and any(map(is_question, last)) else kind


def _vaguely_asked(state: PersonaState, hearing: Hearing) -> tuple[Move, ...]:
    """Asks back what the likeliest question is about, once; whom it did not understand twice, it cannot answer."""
    if not hearing.vague:
        return ()
    likely = max((s.topics[0] for s in hearing.vague), key=lambda each: each.confidence)
    if is_choice(hearing.vague[-1]):
        return (Move(MoveKind.EITHER),)
    if likely.confidence < UNSURE or state.wondered:
        return (Move(MoveKind.UNKNOWN),)
    return (asks_back(state),)
