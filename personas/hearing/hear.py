"""Hears an agent turn as a persona does. Shared by play and by scoring.

`hear`, and `advance` after it, are pure functions of the case, the state, the turn and its reading. Nothing in them
depends on the seed or the temperament but `reserve`, which only ever closes gates; so scoring, which uses reserve 0,
opens at least what the live persona opened. Not understanding is never charged to the agent: only what is positively
recognised costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from personas.case.compiled import CompiledCase, CompiledCommitment, CompiledTopic
from personas.case.schema import RAPPORT_CEILING, Tier, all_hold
from personas.hearing.advance import goals_hold
from personas.hearing.amounts import amounts, in_bounds, within
from personas.hearing.bargaining import FigureRule, dealing_of
from personas.hearing.state import PersonaState
from personas.hearing.summary import misquoted
from personas.hearing.tasks import Task, task_of
from personas.hearing.types import CHECKS_AT_ONCE, NO_QUESTION, AgentTurn, AskedTopic, HeardCommitment, Hearing, gist_of
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, is_question
from personas.reading.second import OWN_WORD
from personas.text.questions import QuestionForm, form_of
from personas.text.wording import content_stems, normal, overlap

__all__ = ["BINDING", "MADE", "gate_open", "hear", "is_new"]

ASKED = 0.45
"""A sentence asks about a topic from this probability on; about a second one from `ALSO_ASKED` on."""
ALSO_ASKED = 0.3
ALONE = 0.33
"""Enough where no other topic is a third as likely: it is about this, or about nothing."""
INVITED = 0.35
"""An invitation may be about a topic from here on; from `UNASKED` on it is about nothing else."""
UNASKED = 0.80
"""A sentence that neither asks nor invites has to be much surer to be taken for a question."""
UNSURE = 0.12
"""From here on the persona asks back which of two topics is meant; below, it is asked about something else."""
BY_NAME = 0.80
"""Only so clear a question is taken for one that was asked before: others may be about something next to it."""
TOLD_ALREADY = 0.25
"""A told topic gives way to an untold one of at least this probability: people go on, they rarely ask again.

One that is asked for clearly (`BY_NAME`) gives way only to one that is likely in itself (`ASKED`)."""
MADE = 0.25
LIKELY_MADE = 0.05
"""Enough for the likeliest commitment of a sentence that proposes something and consoles nobody."""
LIKELIER_MADE = 0.5
"""More likely made than not: what follows in the turn may be about it."""
SURELY_MADE = 0.8
"""The persona answers a commitment that is as likely as this. Below, its answer was as often wrong as right in play."""
CLEARLY_MADE = 0.7
"""Enough for one that the persona came for."""
BINDING = 0.98
"""A commitment that costs the agent has to be this clear, and asserted."""
BINDING_BESIDE = 0.993
"""The same where the sentence makes a likelier one: "Come in today" is also near "Come in this week"."""
BINDING_AGAIN = 0.9975
"""The same by a second reading, which is surer of itself (decision 27)."""
TOPICS_A_SENTENCE = 2
INSTEAD = 0.6
"""So close to the likeliest topic of a sentence, another may be told where the likeliest is not."""
QUESTIONS_A_TURN = 3
"""More sentences that ask about something else each are an interrogation."""
LEGIBLE = 0.5
"""A turn of which less can be read is not understood."""
APT = 0.08
"""A topic that an open invitation may be about."""
BESIDE = 1
"""So much of its story the persona tells beside what an invitation is about."""
STORIES = 2
"""So many open invitations are answered with something new."""
STORY_BEGINS, STORY_GOES_ON = 3, 1
"""What the first of them brings out, and each of the others."""
STORY_TURNS = 3
"""Later than in these turns, the first is one of the others: "Is there anything else?" near the end begins no story."""
SAME_PHRASE = 0.67
SAME_QUESTION = 0.8
"""Two questions that share more than this of their words are one; others may ask for something next to it."""
RAPPORT_FLOOR = -2.0
EMPATHY_GAIN = 1.0
RUDE_LOSS = 1.0
INTERROGATION_LOSS = 0.5


class _Mood(NamedTuple):
    """What a turn did to the persona, as far as it decides what an invitation brings out."""

    rapport: float
    reserve: float
    consoled: bool
    settled: bool


def hear(case: CompiledCase, state: PersonaState, turn: AgentTurn, reading: Reading, reserve: float = 0.0) -> Hearing:
    """Return a turn that was read, as the persona hears it."""
    unclear = _unclear(reading, turn)
    spoken = _to_the_persona(reading)
    rude = reading.any(Act.RUDE)
    if unclear:
        return Hearing(reading, rapport=_rapport(state, None, rude=rude, interrogation=False), unclear=True, rude=rude)
    empathy = None if rude else next((p for p in map(gist_of, _consoling(spoken)) if is_new(p, state.empathy)), None)
    asked_about = [(sentence, _meant(sentence, topics, state)) for sentence, topics in _asked_about(spoken, state)]
    interrogation = _is_interrogation(asked_about)
    rapport = _rapport(state, empathy, rude=rude, interrogation=interrogation)
    asked = _asked_topics(case, state, spoken, asked_about, rapport, reserve)
    task = None if rude else _set(case, state, spoken, asked)
    asked = _asked_beside(task, asked)
    asked_about = [(s, topics if task is None else [c for c in topics if c.id in asked]) for s, topics in asked_about]
    dealing = None if rude else dealing_of(case, state, spoken)
    heard = tuple(_with_figure(case, state, _commitments(case, state, spoken), dealing))
    settled = _settled(case, state, turn, heard)
    invites = any(s.does(Act.INVITE) for s in spoken)
    vague = {s.text for s in spoken if s.does(Act.INVITE) and not s.does(Act.ASK)}
    if invites and all(question.question in vague and question.confidence < UNASKED for question in asked.values()):
        asked = _with_story(case, state, spoken, asked, _Mood(rapport, reserve, bool(empathy), settled))
    elif empathy and not any(_is_left_open(s, topics) for s, topics in asked_about):
        # After what is asked now: a question that gets no answer is a worse reply than a confession that waits.
        freed = {question.topic_id: question for question in _taken_up_again(case, state, spoken, rapport, reserve)}
        asked |= {name: question for name, question in freed.items() if name not in asked}
    strays = tuple(s.text for s, topics in asked_about if _is_stray(s, topics))
    unsure = next((pair for s, topics in reversed(asked_about) if (pair := _between(s, topics)) is not None), None)
    return Hearing(
        reading,
        asked=tuple(asked.values()),
        commitments=heard,
        unsure=None if asked or task else unsure,
        haggles=None if dealing else _haggling(case, spoken, heard),
        misquoted=misquoted(case, state, spoken),
        dealing=dealing,
        task=task,
        wonders=() if asked or task else _wondered(spoken),
        unmatched=strays if task is None else tuple(stray for stray in strays if stray not in task.quotes),
        off_topic=_off_topic(
            reading, asked=bool(asked) or task is not None, heard=bool(heard), invites=invites or unsure is not None
        ),
        invites=invites,
        empathy=empathy,
        rapport=rapport,
        settled=settled,
        rude=rude,
        interrogation=interrogation,
        farewell=_says_goodbye(spoken, asked=bool(asked) or task is not None),
    )


def _asked_topics(  # noqa: PLR0917 (what is asked about, and what decides whether it is open)
    case: CompiledCase,
    state: PersonaState,
    spoken: Sequence[Sentence],
    asked_about: Iterable[tuple[Sentence, Sequence[ReadCandidate]]],
    rapport: float,
    reserve: float,
) -> dict[str, AskedTopic]:
    """The topics that the sentences ask about, each where it is first asked about."""
    asked: dict[str, AskedTopic] = {}
    restated = {s.text for s in spoken if s.does(Act.RECAP, Act.CHECK)}
    for sentence, topics in asked_about:
        for candidate in _without_substitutes(case, topics, state, rapport, reserve):
            if candidate.id not in asked:
                topic = case.by_id[candidate.id]
                again = candidate.confidence >= BY_NAME and sentence.text not in restated and topic.id in state.said
                repeated = again and _was_asked(gist_of(sentence.text), state.asked_as.get(topic.id, ()))
                is_open = gate_open(topic, state, rapport, reserve)
                asked[topic.id] = AskedTopic(topic.id, sentence.text, candidate.confidence, is_open, repeated)
    return asked


def _with_story(
    case: CompiledCase,
    state: PersonaState,
    spoken: Sequence[Sentence],
    asked: dict[str, AskedTopic],
    mood: _Mood,
) -> dict[str, AskedTopic]:
    """What is asked, and what an open invitation brings out.

    What an invitation may be about comes first; the persona goes on with its story from there.
    """
    invited = _invited(case, state, spoken, mood.rapport, mood.reserve, mood.consoled)
    story = [topic for topic in invited if topic.topic_id not in asked]
    if not state.turn and story:
        # Who is invited at once to say what it came for does not begin with an evasion.
        closed = {name for name in asked if not gate_open(case.by_id[name], state, mood.rapport, 0.0)}
        asked = {name: question for name, question in asked.items() if name not in closed}
    if any(not question.open and question.confidence >= ASKED for question in asked.values()):
        # Who is asked for what it does not tell yet does not speak of something else instead.
        story = []
    if mood.settled:
        # Who has what it came for adds what it is asked about, and does not begin its story.
        story = [question for question in story if question.confidence >= ASKED]
    return asked | {question.topic_id: question for question in (story[:BESIDE] if asked else story)}


def _set(
    case: CompiledCase, state: PersonaState, spoken: Sequence[Sentence], asked: Mapping[str, AskedTopic]
) -> Task | None:
    """The task that the turn sets; what the case holds about its own numbers comes before one with these.

    So does what is clearly asked and is no part of the task ("Why does it need 11 to count to 10?").
    """
    task = task_of(case, state, spoken)
    if task is None:
        return None
    instead = [question for question in asked.values() if question.question in task.quotes]
    clearly = any(q.confidence >= BY_NAME and q.topic_id not in task.shows for q in instead)
    return None if instead and (task.own or clearly) else task


def _asked_beside(task: Task | None, asked: dict[str, AskedTopic]) -> dict[str, AskedTopic]:
    """What is asked beside a task: its new numbers ask for none of the old results."""
    if task is None:
        return asked
    return {
        name: question for name, question in asked.items() if name in task.shows or question.question not in task.quotes
    }


def _unclear(reading: Reading, turn: AgentTurn) -> bool:
    if not reading.sentences:
        return not turn.tools
    return reading.legibility < LEGIBLE or not reading.readable or reading.is_list


def _settled(case: CompiledCase, state: PersonaState, turn: AgentTurn, heard: Iterable[HeardCommitment]) -> bool:
    made = {**state.commitments, **{commitment.commitment_id: 0 for commitment in heard if not commitment.early}}
    return bool(case.goals) and (state.goals_met is not None or goals_hold(case, made, (*state.tools, *turn.tools)))


def _to_the_persona(reading: Reading) -> tuple[Sentence, ...]:
    """What may be said to the persona.

    Beside a question about prompts and points, only what clearly asks for something: "What gives the full score?
    Nothing else, please." invites nobody to tell a story. Nor does a goodbye: "I hope this helps! Feel free to reach
    out any time."
    """
    spoken = reading.readable
    if reading.any(Act.META):
        spoken = tuple(replace(s, topics=tuple(c for c in s.topics if c.confidence >= BY_NAME)) for s in spoken)
    elif not _takes_leave(spoken):
        return spoken
    return tuple(replace(s, acts=s.acts - {Act.INVITE}) for s in spoken)


def _asked_about(spoken: Iterable[Sentence], state: PersonaState) -> Iterator[tuple[Sentence, list[ReadCandidate]]]:
    """Per sentence what it asks about. A question may be about what was proposed just before it."""
    spoken = list(spoken)
    task: ReadCandidate | None = None
    offered = False
    leaves = _takes_leave(spoken)
    for sentence in spoken:
        topics = [] if leaves else list(_topics(sentence, state, offered=offered))
        if task is not None and sentence.does(Act.ASK) and not sentence.does(Act.CHECK):
            # "Try this one: …. What do you get?" asks for the new one, not for what was worked out before.
            known = bool(topics) and all(topic.id in state.said for topic in topics)
            fits = not topics and task.id not in state.said and task.confidence >= ASKED and _is_bare(sentence)
            topics = [task] if known or fits else topics
        yield sentence, topics
        if sentence.does(Act.PROPOSE):
            task = next((topic for topic in sentence.topics[:1] if topic.confidence >= INVITED), task)
            offered = offered or any(commitment.confidence >= LIKELIER_MADE for commitment in sentence.commitments[:1])


def _takes_leave(spoken: Sequence[Sentence]) -> bool:
    """True if a turn says goodbye, asks nothing and invites to nothing in particular.

    What it looks back at ("as you did") is no question.
    """
    return any(s.does(Act.CLOSE) for s in spoken) and not any(
        s.does(Act.ASK, Act.CHECK) or is_question(s) or _invites_to_tell(s) for s in spoken
    )


def _invites_to_tell(sentence: Sentence) -> bool:
    """True if it invites to say something about one thing."""
    return sentence.does(Act.INVITE) and any(topic.confidence >= UNASKED for topic in sentence.topics[:1])


def _topics(sentence: Sentence, state: PersonaState, *, offered: bool = False) -> Iterator[ReadCandidate]:
    """The topics that a sentence asks about, an untold one before a told one.

    Behind an offer ("Would that be enough for the two of you?") a question has to be the clearer.
    """
    if sentence.does(Act.RUDE) and not sentence.does(Act.ASK):
        return
    least = ASKED if _asks(sentence) else INVITED if sentence.does(Act.INVITE) else UNASKED
    if offered and (_is_bare(sentence) or not sentence.does(Act.ASK, Act.INVITE)):
        # "Add a line and run it. What do you see?" is about what was proposed, not about what was said before.
        least = UNASKED
    if least == ASKED and _stands_alone(sentence.topics) and not offered:
        least = ALONE
    likely = [topic for topic in sentence.topics if topic.confidence >= min(least, ALSO_ASKED)]
    if not likely or likely[0].confidence < least:
        return
    enough = max(ASKED if likely[0].confidence >= BY_NAME else TOLD_ALREADY, INSTEAD * likely[0].confidence)
    fresh = [topic for topic in sentence.topics if topic.id not in state.said and topic.confidence >= enough]
    if least == INVITED and all(topic.id in state.said for topic in likely):
        # "Would you tell me about it?" behind something that was told invites to go on.
        return
    if likely[0].id in state.said or (fresh and any(topic.id in state.said for topic in likely)):
        likely = fresh or [topic for topic in likely if topic.id in state.said]
    yield from likely[:TOPICS_A_SENTENCE]


def _is_bare(sentence: Sentence) -> bool:
    """True if it says nothing of its own ("What do you get?"): what it is about was said just before it."""
    return not content_stems(sentence.text)


def _meant(sentence: Sentence, topics: list[ReadCandidate], state: PersonaState) -> list[ReadCandidate]:
    """The topics that a sentence asks about; one that asks again about what was not understood is taken to mean it."""
    if topics or not sentence.does(Act.ASK, Act.INVITE) or sentence.does(Act.RUDE):
        return topics
    least = max(UNSURE, INSTEAD * max((topic.confidence for topic in sentence.topics), default=0.0))
    return [topic for topic in sentence.topics if topic.id in state.wondered and topic.confidence >= least][:1]


def _wondered(spoken: Sequence[Sentence]) -> tuple[str, ...]:
    """The topics that the likeliest of its questions may be about, where none is clear."""
    vague = [s for s in spoken if _nearly_asks(s)]
    best = max(vague, key=lambda s: s.topics[0].confidence, default=None)
    return () if best is None else tuple(topic.id for topic in best.topics[:2] if topic.confidence >= UNSURE)


def _stands_alone(topics: Sequence[ReadCandidate]) -> bool:
    return len(topics) == 1 or (len(topics) > 1 and topics[0].confidence >= 3 * topics[1].confidence)


def _asks(sentence: Sentence) -> bool:
    """True if it asks for something; one that does nothing that was recognised, or only proposes, by its question mark.

    "Could you turn it over and read out the code?" proposes, but asks for a fact before it promises anything.
    """
    if sentence.does(Act.ASK, Act.CHECK):
        return True
    promised = max((commitment.confidence for commitment in sentence.commitments), default=0.0)
    requests = sentence.acts == {Act.PROPOSE} and any(topic.confidence > promised for topic in sentence.topics[:1])
    return is_question(sentence) and (not sentence.acts or requests)


def _is_interrogation(asked_about: Sequence[tuple[Sentence, list[ReadCandidate]]]) -> bool:
    """True if it asks more than anybody answers at once: a few checks for a yes or a no are no trouble."""
    asking = [(sentence, topics) for sentence, topics in asked_about if topics]
    checks = all(form_of(sentence.text) is QuestionForm.POLAR for sentence, _ in asking)
    return _new_questions(topics for _, topics in asking) > (CHECKS_AT_ONCE if checks else QUESTIONS_A_TURN)


def _new_questions(topics_by_sentence: Iterable[list[ReadCandidate]]) -> int:
    """The number of sentences that ask about something that none before them asks about."""
    seen: set[str] = set()
    count = 0
    for topics in topics_by_sentence:
        fresh = {topic.id for topic in topics} - seen
        count += bool(fresh)
        seen |= fresh
    return count


def _invited(  # noqa: PLR0917 (what an invitation rests on)
    case: CompiledCase,
    state: PersonaState,
    spoken: Iterable[Sentence],
    rapport: float,
    reserve: float,
    warm: bool,
) -> Iterator[AskedTopic]:
    """The topics that an open invitation brings out: the things the persona would tell next.

    What is asked beside it comes first, then what the invitation is clearly about, then, early in the talk, what the
    persona came to say, then what the invitation may be about, and the rest of its story in the order of the case.
    """
    if state.stories >= STORIES:
        return
    spoken = list(spoken)
    inviting = [s for s in spoken if s.does(Act.INVITE)]
    likely = {c.id: c.confidence for s in inviting for c in s.topics if c.confidence >= APT}
    likely |= {s.topics[0].id: 1.0 for s in spoken if _nearly_asks(s)}
    ready = [t for t in case.topics if t.in_story and t.id not in state.said and gate_open(t, state, rapport, reserve)]
    begins = not state.stories and state.turn < STORY_TURNS
    fitting = [t for t in ready if t.tier in (Tier.ASKED, Tier.VOLUNTEERED) or t.id in likely]
    came_for = INVITED if begins else 0.0
    ranked = sorted(fitting, key=lambda t: -max(likely.get(t.id, 0.0), came_for * (t.tier is Tier.VOLUNTEERED)))
    # What trust opens comes on top: a reserve closes it, and may not put something else in its place. It takes
    # sympathy in the same turn: "Anything else?" opens no heart.
    trusted = [t for t in ranked if t.tier is Tier.RAPPORT and warm]
    plain = [t for t in ranked if t.tier is not Tier.RAPPORT]
    length = STORY_BEGINS if begins else STORY_GOES_ON
    for topic in (*trusted, *plain[:length]):
        yield AskedTopic(topic.id, inviting[0].text, likely.get(topic.id, 0.0), open=True, repeated=False, invited=True)


def _nearly_asks(sentence: Sentence) -> bool:
    """True if a question is about something in the case if it is about anything."""
    asks = sentence.does(Act.ASK) and not sentence.does(Act.INVITE, Act.CHECK)
    return asks and bool(sentence.topics) and sentence.topics[0].confidence >= UNSURE


def _taken_up_again(
    case: CompiledCase, state: PersonaState, spoken: Iterable[Sentence], rapport: float, reserve: float
) -> Iterator[AskedTopic]:
    """One thing that it was asked for last, held back, and says now that it has met with sympathy.

    What was asked for longer ago would come out of the blue.
    """
    quote = next(s.text for s in spoken if s.does(Act.EMPATHY))
    for topic in case.topics:
        held_back = topic.tier is Tier.RAPPORT and topic.id in state.unanswered and topic.id not in state.said
        if held_back and gate_open(topic, state, rapport, reserve):
            yield AskedTopic(topic.id, quote, 0.0, open=True, repeated=False, invited=True)
            return


def _is_left_open(sentence: Sentence, topics: list[ReadCandidate]) -> bool:
    """True if it is a question of its own that nothing in the case was taken for."""
    return sentence.does(Act.ASK) and not sentence.does(Act.CHECK, *NO_QUESTION) and not topics


def _is_stray(sentence: Sentence, topics: list[ReadCandidate]) -> bool:
    """True if it asks for something that the case holds nothing about."""
    best = max((topic.confidence for topic in sentence.topics), default=0.0)
    return sentence.does(Act.ASK) and not sentence.does(Act.INVITE, Act.CHECK) and not topics and best < UNSURE


def _between(sentence: Sentence, topics: list[ReadCandidate]) -> tuple[str, str] | None:
    """The two topics it may ask about, where neither is likely enough."""
    if topics or not sentence.does(Act.ASK) or len(sentence.topics) < 2:
        return None
    first, second = sentence.topics[:2]
    return (first.id, second.id) if first.confidence >= UNSURE and 2 * second.confidence >= first.confidence else None


def _commitments(case: CompiledCase, state: PersonaState, spoken: Iterable[Sentence]) -> Iterator[HeardCommitment]:
    by_id = {commitment.id: commitment for commitment in case.commitments}
    best: dict[str, tuple[ReadCandidate, Sentence]] = {}
    for sentence in spoken:
        for number, candidate in enumerate(sentence.commitments):
            likely = number == 0 and candidate.confidence >= LIKELY_MADE and _only_proposes(sentence)
            made = _confidence(candidate)
            if not (made >= MADE or likely) or not _may_make(by_id[candidate.id], sentence):
                continue
            if candidate.id not in best or made > _confidence(best[candidate.id][0]):
                best[candidate.id] = candidate, sentence
    for name, (candidate, sentence) in best.items():
        early = not all_hold(by_id[name].after, state.said)
        binding = _binds(by_id[name], candidate, sentence)
        made = _confidence(candidate)
        sure = made >= (CLEARLY_MADE if name in case.came_for else SURELY_MADE)
        yield HeardCommitment(name, sentence.text, early, binding, sure=sure, confidence=made)


def _with_figure(
    case: CompiledCase, state: PersonaState, heard: Iterable[HeardCommitment], dealing: FigureRule | None
) -> Iterator[HeardCommitment]:
    """The commitments of a turn; an acceptable figure makes the one that closes the bargain, however it is written."""
    closes = case.bargain.closes if case.bargain else ""
    bounds = next((commitment.amount for commitment in case.commitments if commitment.id == closes), None)
    made = dealing is not None and dealing.makes and bounds is not None and in_bounds(bounds, dealing.offered)
    if dealing is None or not made:
        yield from heard
        return
    rest = [commitment for commitment in heard if commitment.commitment_id != closes]
    clear = next(
        (commitment for commitment in rest if commitment.quote == dealing.quote and _has_amount(case, commitment)), None
    )
    after = next(commitment.after for commitment in case.commitments if commitment.id == closes)
    yield HeardCommitment(closes, dealing.quote, early=not all_hold(after, state.said), binding=False, taken=True)
    yield from (commitment for commitment in rest if commitment is not clear)


def _has_amount(case: CompiledCase, heard: HeardCommitment) -> bool:
    """True if it is a commitment to another figure."""
    return any(
        commitment.id == heard.commitment_id and commitment.amount is not None for commitment in case.commitments
    )


def _haggling(case: CompiledCase, spoken: Iterable[Sentence], heard: Iterable[HeardCommitment]) -> str | None:
    """A sentence that surely makes an offer, but with a figure outside the bounds of all that it may be."""
    bounded = {commitment.id: commitment for commitment in case.commitments if commitment.amount is not None}
    made = {commitment.quote for commitment in heard if commitment.commitment_id in bounded}
    for sentence in spoken:
        surely = any(
            commitment.id in bounded and commitment.confidence >= LIKELIER_MADE for commitment in sentence.commitments
        )
        if surely and sentence.text not in made and amounts(sentence.text):
            return sentence.text
    return None


def _only_proposes(sentence: Sentence) -> bool:
    """Sympathy is no weak sign of a promise: "I'm sorry that they don't fit" refuses nothing."""
    return sentence.does(Act.PROPOSE) and not sentence.does(Act.EMPATHY)


def _may_make(commitment: CompiledCommitment, sentence: Sentence) -> bool:
    return commitment.amount is None or within(commitment.amount, sentence.text)


def _confidence(candidate: ReadCandidate) -> float:
    """How likely it is made: by the first look, or by a second reading that is sure of it."""
    again = candidate.binding or 0.0
    return max(candidate.confidence, again) if again >= BINDING_AGAIN else candidate.confidence


def _binds(commitment: CompiledCommitment, candidate: ReadCandidate, sentence: Sentence) -> bool:
    """True if it may cost the agent: the whole sentence says it, as the agent's own word to the persona.

    What the author wrote for it alone does, said word for word, in whatever stance.
    """
    if is_question(sentence) and not commitment.also_questions:
        return False
    if candidate.confidence >= BINDING and normal(sentence.text) in commitment.normals:
        return True
    if candidate.binding is not None:
        return candidate.binding >= BINDING_AGAIN
    likelier = any(other.confidence > candidate.confidence for other in sentence.commitments)
    return sentence.stance in OWN_WORD and candidate.confidence >= (BINDING_BESIDE if likelier else BINDING)


def _off_topic(reading: Reading, *, asked: bool, heard: bool, invites: bool) -> bool:
    """True if the turn is small talk about another matter and nothing else."""
    if asked or heard or invites:
        return False
    substance = (Act.ASK, Act.INVITE, Act.PROPOSE, Act.INFORM, Act.RECAP, Act.EMPATHY, Act.CHECK, Act.PROCESS)
    spoken = reading.readable
    social = [s for s in spoken if s.does(Act.SOCIAL) and not s.does(Act.GREET, Act.CLOSE, Act.COURTESY)]
    return bool(social) and not any(s.does(*substance) and not s.does(Act.SOCIAL) for s in spoken)


def _says_goodbye(spoken: Iterable[Sentence], *, asked: bool) -> bool:
    """True if it takes its leave: who asks something after it stays."""
    closes = asks = -1
    for number, sentence in enumerate(spoken):
        closes = number if sentence.does(Act.CLOSE) else closes
        asks = number if sentence.does(Act.ASK, Act.INVITE) or is_question(sentence) else asks
    return not asked and closes >= 0 and closes >= asks


def _consoling(spoken: Iterable[Sentence]) -> Iterator[str]:
    return (s.text for s in spoken if s.does(Act.EMPATHY))


def gate_open(topic: CompiledTopic, state: PersonaState, rapport: float, reserve: float) -> bool:
    """True if the persona may answer a question about the topic in the coming turn."""
    if topic.tier is Tier.UNKNOWN:
        return False
    if topic.id in state.said or topic.tier is Tier.VOLUNTEERED:
        return True
    return (
        (topic.tier is not Tier.RAPPORT or rapport >= topic.gate.rapport + reserve)
        and state.turn + 1 > topic.gate.after_turn
        and all_hold(topic.gate.requires, state.said)
    )


def _without_substitutes(
    case: CompiledCase, topics: Sequence[ReadCandidate], state: PersonaState, rapport: float, reserve: float
) -> Iterator[ReadCandidate]:
    """The topics that a sentence asks about, without those that the persona would only tell for another.

    What takes more trust, it evades: to speak of something that is less likely meant would be no answer.
    """
    if not topics:
        return
    first = case.by_id[topics[0].id]
    told = first.tier is not Tier.RAPPORT or gate_open(first, state, rapport, reserve)
    yield from (topic for topic in topics if told or topic is topics[0] or topic.confidence >= BY_NAME)


def _rapport(state: PersonaState, empathy: str | None, *, rude: bool, interrogation: bool) -> float:
    """Rapport after this turn; it depends on the agent's words alone, never on what the persona said."""
    gain = EMPATHY_GAIN if empathy and state.rapport < RAPPORT_CEILING and len(state.empathy) < RAPPORT_CEILING else 0.0
    loss = RUDE_LOSS * rude + INTERROGATION_LOSS * interrogation
    return max(RAPPORT_FLOOR, min(RAPPORT_CEILING, state.rapport + gain) - loss)


def _was_asked(question: str, earlier: Iterable[str]) -> bool:
    """True if a question was asked before in the same words, or all but the same."""
    words = _words(question)
    return any(2 * len(words & seen) > SAME_QUESTION * (len(words) + len(seen)) for seen in map(_words, earlier))


def _words(gist: str) -> set[str]:
    return set(gist.split())


def is_new(phrase: str, heard: Iterable[str]) -> bool:
    """True if a sympathetic phrase has not been heard in the same or nearly the same words."""
    return not any(phrase == seen or overlap(phrase, seen) >= SAME_PHRASE for seen in heard)
