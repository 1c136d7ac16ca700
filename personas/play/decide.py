"""Decides what a persona does in answer to a turn, before any word is chosen.

The result is a short list of moves in the order they will be spoken. Only `TELL`, `VOLUNTEER` and `AGAIN`
carry the content of a fact, and only for facts that may be told now; everything else is manner.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from personas.case.compiled import CompiledCase, CompiledCommitment
from personas.case.schema import Bargain, Tier
from personas.case.temperament import Temperament
from personas.hearing.background import BESIDE_ANSWER, SURE, BackgroundTurn, RecalledBackground
from personas.hearing.bargaining import AmountAnswer, FigureRule
from personas.hearing.hear import ASKED, BY_NAME, UNSURE
from personas.hearing.state import PersonaState
from personas.hearing.tasks import Task, last_task
from personas.hearing.types import CHECKS_AT_ONCE, NO_QUESTION, AgentTurn, AskedTopic, Hearing
from personas.play.guard import gives_away
from personas.play.move import COMPLIANT, FIGURES, REACTIONS, TELLING, Move, MoveKind
from personas.play.reactions import (
    asks_back,
    closing_of,
    comes_first,
    is_choice,
    left_open,
    proposes_last,
    reactions_to,
    small_talk,
    thanks,
)
from personas.reading.acts import Act, Sentence, is_question
from personas.reading.features import is_elliptic
from personas.text.questions import QuestionForm, form_of, questions_in
from personas.text.sentences import sentences
from personas.text.wording import content_stems

BESIDE_NO_FIGURE = frozenset(
    {
        MoveKind.WITHHELD,
        MoveKind.AGAIN,
        MoveKind.NO_MORE,
        MoveKind.TIRED,
        MoveKind.CONFIRMS,
        MoveKind.UNKNOWN,
        MoveKind.ASKS_BACK,
    }
)
NOTHING_ASIDE = BackgroundTurn()
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
    aside: BackgroundTurn = NOTHING_ASIDE,
) -> tuple[Move, ...]:
    """The moves of a reply.

    `after` is the state after the turn as far as the agent's words decide it. `aside` is the turn as it is read among
    topics and background.
    """
    if after.annoyance >= temperament.patience:
        return (Move(MoveKind.LEAVING),)
    if hearing.unclear and aside.recalled and not hearing.rude:
        return _recalled(case, state, aside.recalled[0])
    if hearing.unclear:
        return (Move(MoveKind.HURT if hearing.rude else MoveKind.NOT_UNDERSTOOD),)
    told_first = _volunteered(case, state)
    answers = _answers(case, temperament, state, hearing, aside)
    if hearing.empathy and answers == (Move(MoveKind.UNKNOWN),):
        # Sympathy is not passed over for a question that it cannot answer, nor the question for sympathy.
        answers = (Move(MoveKind.WARMED), *answers)
    if hearing.dealing is not None and case.bargain is not None:
        answers = _beside_figure(answers, hearing.dealing, case.bargain)
    reactions = reactions_to(case, state, turn, hearing, answers)
    if any(move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY) for move in reactions):
        # An offer names again what the persona has told: that is no question, unless it clearly is one.
        asked = {each.topic_id for each in hearing.asked if each.confidence >= BY_NAME and _is_asked(hearing, each)}
        answers = tuple(m for m in answers if m.kind is not MoveKind.AGAIN or m.about in asked)
        answers = tuple(m for m in answers if m.kind is not MoveKind.NO_MORE)
    if reactions and not answers and not any(move.kind in FIGURES | {MoveKind.HESITATES} for move in reactions):
        # What it was asked last is not passed over for what was promised before.
        reactions = (*reactions, *left_open(case, hearing, reactions))
    # Thanks for kindness come at once, everything else in the order of the turn.
    questions = (*(each.question for each in hearing.asked), *(each.question for each in aside.recalled))
    first = thanks(hearing, reactions) or comes_first(hearing, reactions, questions)
    body = (*reactions, *answers) if first else (*answers, *reactions)
    wanted = {asked.topic_id for asked in hearing.asked if not asked.invited} | {each.id for each in aside.recalled}
    closing = closing_of(case, state, hearing, after, body)
    if closing is not None:
        # Last words follow what was asked for and offered, but no small talk.
        said_before = told_first if closing is MoveKind.WAIT else ()
        meant = tuple(move for move in body if move.kind not in COMPLIANT)
        times = state.farewells if closing is MoveKind.GOODBYE else 0
        return (*_fit(case, (*said_before, *meant), MAX_SENTENCES - 1, wanted), Move(closing, nth=times))
    manner = _manner(hearing)
    # The answer to an invitation, and to a greeting, is what it came to say.
    small = () if body or manner or (told_first and hearing.invites) else small_talk(state, hearing)
    if told_first:
        small = tuple(move for move in small if move.kind in (MoveKind.GREETS, MoveKind.WARMED, MoveKind.CONSENTS))
    small, body = _attended(case, state, hearing, aside, small, body)
    # Who opens up says more than who only answers.
    length = MAX_AT_LENGTH if hearing.opens_up else MAX_SENTENCES
    return _fit(case, (*manner, *small, *told_first, *body), length, wanted)


def _beside_figure(answers: tuple[Move, ...], dealing: FigureRule, bargain: Bargain) -> tuple[Move, ...]:
    """The answers that are given beside a figure.

    The figure is the answer to who asks for one: what the persona would put off or say again is not said beside it.
    """
    idle = BESIDE_NO_FIGURE | ({MoveKind.PARTIAL} if dealing.answer is not AmountAnswer.COUNTERS else set())
    return tuple(move for move in answers if move.kind not in idle or move.about not in ("", *bargain.figures))


def _attended(  # noqa: PLR0917 (what is said, and what it answers)
    case: CompiledCase,
    state: PersonaState,
    hearing: Hearing,
    aside: BackgroundTurn,
    small: tuple[Move, ...],
    body: tuple[Move, ...],
) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
    """Small talk and body, with something said to a question that nothing of it answers, and no yes to one for more.

    An author's line that is next to the question comes first; the persona knows nothing about it otherwise.
    """
    found = _left(case, hearing, aside, body)
    if found is None:
        return small, body
    left, part = found
    nearest = aside.nearest.get(part)
    if nearest is not None and any(move.about == nearest.id for move in body):
        return small, body
    answers = any(move.kind not in IDLE for move in body)
    # What is asked for has an answer that is next to it; a proposal or a choice wants a yes or a no.
    asks = left.does(Act.ASK) and not left.does(Act.PROPOSE) and not is_choice(left)
    if nearest is not None and (_fits_beside(nearest, answers) or (not answers and asks)):
        fits = _recalled(case, state, nearest)
        return _without(small, IDLE), (*_without(body, IDLE), *fits)
    if form_of(part) is not QuestionForm.OPEN or all(move.kind not in CONSENT for move in (*small, *body)):
        return small, body
    if proposes_last(hearing) and left is not hearing.reading.readable[-1]:
        # It cannot tell the one, and agrees to the other.
        return small, (Move(MoveKind.UNKNOWN), *_without(body, {MoveKind.UNKNOWN}))
    return _without(small, CONSENT), (*_without(body, CONSENT), Move(MoveKind.UNKNOWN))


def _fits_beside(nearest: RecalledBackground, answers: bool) -> bool:
    """True if what is next to a question is said; beside an answer, of what any persona says, only what is sure."""
    return nearest.confidence >= (SURE if answers and nearest.common else BESIDE_ANSWER)


CONSENT = frozenset(
    {
        MoveKind.AGREES,
        MoveKind.HESITATES,
        MoveKind.EITHER,
        MoveKind.CONSENTS,
        MoveKind.CONFIRMS,
        MoveKind.FOLLOWING,
        MoveKind.CHATS,
    }
)
"""What answers no question for something."""
IDLE = CONSENT | {MoveKind.UNKNOWN, MoveKind.ASKS_BACK, MoveKind.NO_MORE, MoveKind.NO_RUSH, MoveKind.WELCOMES}


def _without(moves: tuple[Move, ...], kinds: Container[MoveKind]) -> tuple[Move, ...]:
    return tuple(move for move in moves if move.kind not in kinds)


def _left(
    case: CompiledCase, hearing: Hearing, aside: BackgroundTurn, body: tuple[Move, ...]
) -> tuple[Sentence, str] | None:
    """The last question of the turn that nothing answers, if there is one, and the sentence that asks it."""
    said_topics = {move.about for move in body if move.kind not in IDLE}
    answered = {each.question for each in hearing.asked if each.topic_id in said_topics}
    answered |= {each.quote for each in hearing.answered}
    answered |= set(hearing.task.quotes) if hearing.task is not None else set()
    answered |= {hearing.haggles} if hearing.haggles is not None else set()
    answered |= {hearing.dealing.quote} if hearing.dealing is not None else set()
    recalled = {a.part for a in aside.recalled if a.id in said_topics or case.asides[a.id].repeats}
    recalled |= {part for part, topics in aside.asked.items() if topics & said_topics}
    for sentence in reversed(hearing.reading.readable):
        if not (sentence.does(Act.ASK) or (is_question(sentence) and not sentence.does(Act.PROPOSE))):
            continue
        parts = questions_in(sentence.text)
        of_one = len(parts) == 1 or not recalled.intersection(parts)
        if of_one and sentence.text in answered:
            continue
        left = [part for part in reversed(parts) if part not in recalled]
        if left:
            return sentence, max(
                left, key=lambda part: aside.nearest[part].confidence if part in aside.nearest else 0.0
            )
    return None


def _manner(hearing: Hearing) -> tuple[Move, ...]:
    if hearing.rude:
        return (Move(MoveKind.HURT),)
    return (Move(MoveKind.TOO_MANY),) if hearing.interrogation else ()


def _is_asked(hearing: Hearing, asked: AskedTopic) -> bool:
    return any(s.does(Act.ASK) and not s.does(*NO_QUESTION) for s in hearing.saying(asked.question))


def _volunteered(case: CompiledCase, state: PersonaState) -> tuple[Move, ...]:
    """The things that the persona comes to say and its opening left out."""
    return tuple(Move(MoveKind.VOLUNTEER, topic.id) for topic in case.volunteered if topic.id not in state.said)


# --- answers to questions and invitations ------------------------------------------------------------------


def _answers(
    case: CompiledCase,
    temperament: Temperament,
    state: PersonaState,
    hearing: Hearing,
    aside: BackgroundTurn,
) -> tuple[Move, ...]:
    """Answers in the order asked, no more than the persona tells at once."""
    pressed = hearing.rude or hearing.interrogation
    limit = 1 if pressed else max(temperament.facts_per_turn + hearing.opens_up, min(hearing.checks, CHECKS_AT_ONCE))
    told_first = {move.about for move in _volunteered(case, state)}
    if hearing.misquoted is not None:
        return (Move(MoveKind.MISQUOTED, hearing.misquoted, nth=state.worded.get(hearing.misquoted, 1)),)
    task = hearing.task or _asked_how(case, state, hearing)
    if task is not None and any(each.question in task.quotes and each.confidence >= SURE for each in aside.recalled):
        # What the author has an answer to is no task.
        task = None
    instead = {(each.question, topic) for each in aside.recalled for topic in each.instead}
    asked = [a for a in hearing.asked if (a.question, a.topic_id) not in instead]
    worked = () if task is None else task.quotes
    # Of what a task asks for the result is the answer, and beside it what it brings out for the first time.
    shown = {a.topic_id for a in asked if task is not None and a.topic_id in task.shows and a.open}
    asked = [a for a in asked if a.question not in worked or a.topic_id in shown - state.said.keys()]
    asked_for = [a for a in asked if a.topic_id not in told_first and not _is_offered(state, hearing, a)]
    # What it has told is told again only to who clearly asks for it.
    asked_for = [a for a in asked_for if a.topic_id not in state.said or a.confidence >= ASKED] or asked_for
    asked_for = [a for a in asked_for if a.open or not _is_guess(case, hearing, a)]
    # An invitation with sympathy opens all that trust opens, and one of it is told at a time.
    confided = [a for a in asked_for if a.invited and case.by_id[a.topic_id].tier is Tier.RAPPORT]
    asked_for = [a for a in asked_for if a not in confided[1:]]
    answers = ((asked, _answer(case, state, hearing, asked, aside)) for asked in asked_for)
    by_urgency = sorted(answers, key=partial(_urgency, case))
    result = () if task is None else (_works_out(case, state, task),)
    beside = [each for each in aside.recalled if each.question not in worked]
    recalled = [*result, *(move for each in beside for move in _recalled(case, state, each))]
    answered = {asked.question for asked, move in by_urgency if move.kind is MoveKind.TELL}
    telling = [(asked, move) for asked, move in by_urgency if not _is_idle(asked, move, answered)]
    chosen = telling[:limit] if telling or recalled else by_urgency[:1]
    moves = [move for asked, move in sorted(chosen, key=lambda pair: asked_for.index(pair[0]))]
    moves = [*recalled[: len(result)], *moves, *recalled[len(result) :][: max(limit - len(moves), 0 if moves else 1)]]
    if hearing.unsure is not None and not hearing.answered and not aside.recalled:
        return (asks_back(state),)
    if moves:
        return tuple(_once(_late(state, hearing, moves)))
    stray = _stumped_by(hearing)
    if stray is None:
        return ()
    return (Move(MoveKind.EITHER if is_choice(stray) else MoveKind.UNKNOWN),)


def _recalled(case: CompiledCase, state: PersonaState, found: RecalledBackground) -> tuple[Move, ...]:
    """The background it tells; to who has not caught its last line, what that told."""
    last = tuple(name for name in state.conversation.told if name in case.by_id)
    task = last_task(case, state)
    if case.asides[found.id].repeats and task is not None:
        return (_works_out(case, state, task),)
    if not (case.asides[found.id].repeats and last):
        return (_recalls(state, found),)
    return tuple(Move(MoveKind.AGAIN, name, nth=state.worded.get(name, 1)) for name in last[:2])


def _asked_how(case: CompiledCase, state: PersonaState, hearing: Hearing) -> Task | None:
    """The task before, where it is asked how it came to the result: by a question with no matter of its own."""
    task = last_task(case, state)
    asking = [s for s in hearing.reading.readable if form_of(s.text) is QuestionForm.OPEN and not content_stems(s.text)]
    return replace(task, quotes=tuple(s.text for s in asking)) if task is not None and asking else None


def _works_out(case: CompiledCase, state: PersonaState, task: Task) -> Move:
    """The result in words that are no fact's: on numbers of the case they might be."""
    lines = tuple(line for line in task.lines if not gives_away(case, state.said, line))
    return Move(MoveKind.WORKS_OUT, task.skill, lines=lines) if lines else Move(MoveKind.NO_MORE, task.skill)


def _recalls(state: PersonaState, found: RecalledBackground) -> Move:
    return Move(MoveKind.BACKGROUND, found.id, nth=state.worded.get(found.id, 0))


def _urgency(case: CompiledCase, answer: tuple[AskedTopic, Move]) -> tuple[bool, bool, bool, bool, float]:
    """Smallest first: what is clearly asked, what can be told, what is so before what is not, then the likelier."""
    asked, move = answer
    denied = not case.by_id[asked.topic_id].in_story
    return asked.invited, asked.confidence < ASKED, move.kind is not MoveKind.TELL, denied, -asked.confidence


def _is_idle(asked: AskedTopic, move: Move, answered: Container[str]) -> bool:
    """True if it would be beside the point where something else is answered, too.

    That is what it knows no more about, what it puts off of a question that it answers (`answered`), and what was
    hardly asked for and is only repeated or put off.
    """
    puts_off = move.kind in {MoveKind.PARTIAL, MoveKind.WITHHELD}
    hardly = asked.confidence < BY_NAME and not asked.repeated
    if move.kind in (MoveKind.AGAIN, MoveKind.ANSWER):
        return hardly
    return move.kind is MoveKind.NO_MORE or (puts_off and (hardly or asked.question in answered))


def _is_guess(case: CompiledCase, hearing: Hearing, asked: AskedTopic) -> bool:
    """True if it was hardly asked for: to evade that would give away that there is something, and answer nothing."""
    if asked.confidence >= BY_NAME or case.by_id[asked.topic_id].tier is Tier.UNKNOWN:
        return False
    return not any(s.topics and s.topics[0].id == asked.topic_id for s in hearing.saying(asked.question))


def _is_offered(state: PersonaState, hearing: Hearing, asked: AskedTopic) -> bool:
    """True if a question about something told is an offer: "Shall I take the old address out?" wants a yes."""
    if asked.topic_id in state.said and asked.question == hearing.haggles:
        return True
    return asked.topic_id in state.said and any(s.does(Act.PROPOSE) for s in hearing.saying(asked.question))


def _late(state: PersonaState, hearing: Hearing, moves: Sequence[Move]) -> Iterator[Move]:
    """The answers; what was asked earlier and comes only now, beside another answer, says so."""
    invited = {asked.topic_id for asked in hearing.asked if asked.invited and asked.topic_id in state.held_back}
    for move in moves:
        late = len(moves) > 1 and move.kind is MoveKind.TELL and move.about in invited
        yield replace(move, late=True) if late else move


def _once(moves: Iterable[Move]) -> Iterator[Move]:
    """Two evasions of the same kind in one breath sound like a machine."""
    seen: set[MoveKind] = set()
    for move in moves:
        if move.kind in TELLING | {MoveKind.AGAIN} or move.kind not in seen:
            yield move
        seen.add(move.kind)


def _answer(
    case: CompiledCase, state: PersonaState, hearing: Hearing, asked: AskedTopic, aside: BackgroundTurn
) -> Move:
    topic = case.by_id[asked.topic_id]
    if topic.tier is Tier.UNKNOWN:
        times = state.asked.get(topic.id, 0)
        return Move(MoveKind.ANSWER if topic.answer and not times else MoveKind.UNKNOWN, topic.id)
    if not asked.open:
        # A second time, what is private is refused, and what only comes later is put off again.
        private = topic.tier is Tier.RAPPORT and topic.id in state.held_back
        return Move(MoveKind.PARTIAL if topic.partial and not private else MoveKind.WITHHELD, topic.id)
    if topic.id not in state.said:
        # Nothing is led in by a small word that is told in trust or in an hour of need.
        trusting = topic.tier is Tier.RAPPORT or hearing.rapport > 0 or hearing.reading.any(Act.EMPATHY)
        return Move(MoveKind.TELL, topic.id, plain=trusting)
    return _told_before(case, state, hearing, asked, aside)


def _told_before(
    case: CompiledCase, state: PersonaState, hearing: Hearing, asked: AskedTopic, aside: BackgroundTurn
) -> Move:
    times = state.worded.get(asked.topic_id, 1)
    restates = any(s.does(Act.RECAP, Act.CHECK) for s in hearing.saying(asked.question))
    if restates and form_of(asked.question) is not QuestionForm.OPEN:
        return Move(MoveKind.CONFIRMS)
    used_up = times >= len(case.by_id[asked.topic_id].says)
    if used_up and asked.repeated and times > 1:
        return Move(MoveKind.TIRED, asked.topic_id)
    clear = max(asked.confidence, aside.topics.get(asked.topic_id, 0.0))
    if used_up and clear < BY_NAME and not asked.repeated and asked.topic_id in state.asked:
        # All of it was told, and what is asked now may be something else about it.
        return Move(MoveKind.NO_MORE, asked.topic_id)
    return Move(MoveKind.AGAIN, asked.topic_id, nth=times, plain=not asked.repeated)


def _stumped_by(hearing: Hearing) -> Sentence | None:
    """The last of its questions about something the persona knows nothing of, where it asks and offers nothing else."""
    if hearing.asked or hearing.answered or any(s.topics[0].confidence >= UNSURE for s in hearing.vague):
        return None
    strays = [s for s in hearing.strays if not s.does(*NO_QUESTION) and not s.commitments]
    # "I could send it. Does that sound useful?" is one thing; a question of its own has a likeness to something, or
    # says itself what it asks for, at the end of the turn.
    last = hearing.reading.readable[-1:]
    own = (s.topics or not hearing.proposal or (s in last and not is_elliptic(s.text)) for s in strays)
    return strays[-1] if any(own) else None


# --- length ------------------------------------------------------------------------------------------------


_RANK = dict.fromkeys(FIGURES, 1) | {
    MoveKind.VOLUNTEER: 0,
    MoveKind.HURT: 1,
    MoveKind.TOO_MANY: 1,
    MoveKind.REPLY: 2,
    MoveKind.REPLY_EARLY: 2,
    MoveKind.TOOL_REPLY: 2,
}


def _fit(case: CompiledCase, moves: tuple[Move, ...], budget: int, wanted: Container[str]) -> tuple[Move, ...]:
    """Drops the least important moves until the reply is short; the first answer always stays.

    `wanted` are the topics that were asked for.
    """
    first = next((m for m in moves if m.kind is MoveKind.TELL), moves[0] if moves else None)
    reaction = next((m for m in moves if m.kind in REACTIONS | FIGURES), None)
    by_id = {commitment.id: commitment for commitment in case.commitments}
    # An answer to each of two questions, or an answer and a reaction: neither is passed over.
    kinds = {MoveKind.TELL, MoveKind.AGAIN, MoveKind.BACKGROUND}
    answers = [m for m in moves if m.kind is MoveKind.WORKS_OUT or (m.kind in kinds and m.about in wanted)]
    backs = [move for move in moves if move.kind is MoveKind.ASKS_BACK]
    due = {*answers, *backs, *(move for move in (first, reaction) if move is not None)}
    if len(due) > 1:
        all_due = sum(_sentences(case, by_id, move) for move in due)
        longest = CHECKS_AT_ONCE * 2 if len(answers) > 2 else budget + MAX_AT_LENGTH - MAX_SENTENCES
        budget = max(budget, min(all_due, longest))
    fitting: set[Move] = set()
    for move in sorted(
        moves,
        key=lambda m: (
            -1 if m is first else _RANK.get(m.kind, 3 + (m.about not in wanted) + 0.5 * (m.kind is MoveKind.AGAIN))
        ),
    ):
        length = _sentences(case, by_id, move)
        if not fitting or length <= budget:
            fitting.add(move)
            budget -= length
    return tuple(move for move in moves if move in fitting)


def _sentences(case: CompiledCase, commitments: dict[str, CompiledCommitment], move: Move) -> int:
    """The number of sentences that a move will have at most."""
    if move.kind is MoveKind.WORKS_OUT:
        return max(len(sentences(line)) for line in move.lines)
    if move.kind is MoveKind.BACKGROUND:
        return case.asides[move.about].length
    topic = case.by_id.get(move.about)
    if topic is not None and move.kind in (MoveKind.TELL, MoveKind.VOLUNTEER, MoveKind.AGAIN):
        return topic.length + (move.kind is MoveKind.AGAIN)
    if move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY):
        return commitments[move.about].length
    return 1
