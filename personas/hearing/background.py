"""Recalls a persona's background: answers to what a turn asks or offers beside the matter.

Nothing of it earns or costs anything, so it is chosen in play alone. It gives way to a topic that is clearly asked
for and to a promise that the case has an answer to, and comes before an evasion, a repetition and a stock consent.

Topics are read twice: among each other, which is what scoring goes by, and among topics and background. The second
reading tells apart what lies close together ("Who pays for the heating?" and "What is the rent?").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from personas.case.compiled import CompiledCase, CompiledTopic, later_id
from personas.case.schema import all_hold
from personas.hearing.hear import gate_open
from personas.hearing.state import PersonaState
from personas.hearing.types import AskedTopic, Hearing
from personas.reading.acts import Act, ReadCandidate, Sentence, is_question
from personas.reading.features import is_elliptic
from personas.text.questions import QuestionForm, form_of, questions_in

__all__ = ["BackgroundTurn", "RecalledBackground", "aside_of", "may_recall"]

LIKELY = 0.6
"""Enough where it is likelier than every topic. Below, it was as often wrong as right in blind play."""
CERTAIN = 0.95
"""Enough instead of a story that it is invited to tell, and for what any persona answers.

In blind play none of eight answers of that kind was apt, all less likely than this; of 74 of a case's own, 64 were.
"""
SURE = 0.8
"""Enough beside a topic that is read as more likely among topics alone."""
SURER = 0.1
"""So much likelier than a topic among topics, it is an answer instead of it."""
HARDLY = 0.3
"""A topic that is less likely than this among topics and background gives way to what is recalled."""
NEAREST = 0.3
"""Enough where nothing else answers a turn: a line of the background that is next to it, before "I couldn't say"."""
BESIDE_ANSWER = 0.5
"""Enough for a question that is left over beside others that are answered."""
_MAY = (Act.ASK, Act.INVITE, Act.PROPOSE, Act.CHECK)


@dataclass(frozen=True, slots=True)
class RecalledBackground:
    """Something of its background that a sentence is about."""

    id: str
    question: str
    """The sentence."""
    part: str
    """What of it asks for this: one of the questions that it joins."""
    confidence: float
    instead: frozenset[str] = frozenset()
    """Topics that the sentence was taken to ask about, and does not."""
    common: bool = False
    """Whether any persona answers so."""


@dataclass(frozen=True, slots=True)
class BackgroundTurn:
    """A turn as it is read among topics and background."""

    recalled: tuple[RecalledBackground, ...] = ()
    topics: Mapping[str, float] = field(default_factory=dict)
    """How likely a sentence asks about a topic, at most."""
    nearest: Mapping[str, RecalledBackground] = field(default_factory=dict)
    """Per question the entry of the background that is next to it, for when nothing else answers it."""
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Per question the topics that it, of those that its sentence joins, asks about."""


def may_recall(hearing: Hearing) -> list[Sentence]:
    """The sentences that the background may have an answer to, and of one that joins questions each of these.

    "Who pays, and when could she move in?" is about one thing or the other, and as a whole like neither. Of a turn
    about the talk itself all that asks ("Am I talking to a machine?"): a persona stays in its role.
    """
    if hearing.unclear:
        return [s for s in hearing.reading.sentences if s.does(Act.META) and not s.does(Act.RUDE) and is_question(s)]
    answered = {heard.quote for heard in hearing.answered}
    spoken = hearing.reading.readable
    offer = next((number for number, sentence in enumerate(spoken) if sentence.does(Act.PROPOSE)), len(spoken))
    # "Does that suit you?" behind an offer is about the offer; "And what would he say?" is not.
    apart = [s for number, s in enumerate(spoken) if number <= offer or not _asks_consent(s)]
    may = [s for s in apart if s.does(*_MAY) or is_question(s)]
    whole = [s for s in may if not s.does(Act.RUDE) and s.text not in answered]
    return [replace(sentence, text=part) for sentence in whole for part in questions_in(sentence.text)]


def _asks_consent(sentence: Sentence) -> bool:
    return is_elliptic(sentence.text) and form_of(sentence.text) is not QuestionForm.OPEN


def aside_of(
    case: CompiledCase,
    state: PersonaState,
    hearing: Hearing,
    said: Sequence[Sentence],
    found: Sequence[Sequence[ReadCandidate]],
) -> BackgroundTurn:
    """The part of the background that the sentences bring to mind, each once, in the order of the turn.

    Args:
        case: the persona's.
        state: before the turn.
        hearing: the turn as the persona understands it.
        said: the sentences of `may_recall`.
        found: per sentence the topics and the background it may be about, as `Reader.beside` gives them.
    """
    chosen: dict[str, RecalledBackground] = {}
    nearest: dict[str, RecalledBackground] = {}
    abouts = [{c.id: c.confidence for c in candidates if c.id in case.by_id} for candidates in found]
    wholes = _wholes(hearing, said)
    asks = _asked_in(hearing, wholes, abouts)
    for part, whole, about, asked, candidates in zip(said, wholes, abouts, asks, found, strict=True):
        needed, rival = _needed(state, asked), max(about.values(), default=0.0)
        own, common = _likeliest(case, state, hearing, candidates)
        # The author's line first; what any persona could say ("Say that again?") is better than that it cannot tell.
        beside = next((aside for aside in (own, common) if aside and aside[0].confidence >= NEAREST), None)
        if beside is not None:
            nearest[part.text] = RecalledBackground(
                beside[1].id, whole, part.text, beside[0].confidence, common=beside is common
            )
        # To say its last line again suits any persona and gives nothing new away: no need to be certain.
        again = common is not None and common[1].repeats
        brought = ((own, needed), (common, needed if again else max(needed, CERTAIN)))
        enough = [aside for aside, least in brought if aside and least <= aside[0].confidence > rival]
        # The author's line first, unless what any persona answers is the likelier of two that are likely enough.
        found_now = max(enough, key=lambda pair: pair[0].confidence, default=None)
        if found_now is None or found_now[1].id in chosen:
            continue
        best, entry = found_now
        instead = frozenset(a.topic_id for a in asked if _gives_way(a, state, best, about.get(a.topic_id, 0.0)))
        chosen[entry.id] = RecalledBackground(entry.id, whole, part.text, best.confidence, instead)
    topics = {name: max(about.get(name, 0.0) for about in abouts) for name in {*chain.from_iterable(abouts)}}
    by_part = {part.text: frozenset(a.topic_id for a in asked) for part, asked in zip(said, asks, strict=True)}
    return BackgroundTurn(tuple(chosen.values()), topics, nearest, by_part)


def _wholes(hearing: Hearing, said: Iterable[Sentence]) -> list[str]:
    """The sentence of each question."""
    whole = {part: s.text for s in hearing.reading.sentences for part in questions_in(s.text)}
    return [whole.get(part.text, part.text) for part in said]


def _asked_in(hearing: Hearing, wholes: Sequence[str], abouts: Sequence[Mapping[str, float]]) -> list[list[AskedTopic]]:
    """What each question asks about: of those that a sentence joins, a topic belongs to the one that is likeliest."""
    asks: list[list[AskedTopic]] = [[] for _ in wholes]
    for question in hearing.asked:
        places = [place for place, whole in enumerate(wholes) if whole == question.question]
        if places:
            asks[max(places, key=lambda place: abouts[place].get(question.topic_id, 0.0))].append(question)
    return asks


_Found = tuple[ReadCandidate, CompiledTopic] | None


def _likeliest(
    case: CompiledCase, state: PersonaState, hearing: Hearing, candidates: Iterable[ReadCandidate]
) -> tuple[_Found, _Found]:
    """The likeliest entry that can be said now of the case's own background, and of the common one."""
    own = {entry.id for entry in case.own_background}
    likeliest: dict[bool, tuple[ReadCandidate, CompiledTopic]] = {}
    for candidate in candidates:
        entry = _ready(case, state, hearing, candidate.id, again=candidate.confidence >= LIKELY)
        if entry is not None:
            likeliest.setdefault(candidate.id in own, (candidate, entry))
    return likeliest.get(True), likeliest.get(False)


def _ready(case: CompiledCase, state: PersonaState, hearing: Hearing, name: str, again: bool) -> CompiledTopic | None:
    """The entry of the background that can be said now; the later one if it is.

    In words that were used before only `again`, to who surely asks for it: the same question gets the same answer.
    """
    for entry in (case.asides.get(later_id(name)), case.asides.get(name)):
        if entry is not None and all_hold(entry.gate.requires, state.said):
            left = again or state.worded.get(entry.id, 0) < len(entry.says)
            return entry if left and gate_open(entry, state, hearing.rapport, 0.0) else None
    return None


def _needed(state: PersonaState, asked: Sequence[AskedTopic]) -> float:
    """The least probability that it needs, beside what the sentence was understood as."""
    if any(question.invited for question in asked):
        return CERTAIN
    untold = max((question.confidence for question in asked if question.topic_id not in state.said), default=LIKELY)
    return max(LIKELY, min(SURE, untold))


def _gives_way(asked: AskedTopic, state: PersonaState, best: ReadCandidate, likely: float) -> bool:
    """True if what is recalled is said instead of a topic, and not beside it."""
    return asked.topic_id in state.said or likely < HARDLY or best.confidence >= asked.confidence + SURER
