"""What a persona recalls of its background: answers to what a turn asks or offers beside the matter.

Nothing of it earns or costs anything, so it is chosen in play alone. It gives way to a topic that is clearly asked
for and to a promise that the case has an answer to, and comes before an evasion, a repetition and a stock consent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from personas.compiled import CompiledCase
from personas.heard import Hearing
from personas.hearing import gate_open, is_question
from personas.reading.acts import Act, Candidate, Sentence
from personas.reading.features import is_elliptic
from personas.state import PersonaState

__all__ = ["Recalled", "may_recall", "recalled"]

LIKELY = 0.6
"""Enough where it is likelier than every topic. Below, it was as often wrong as right in blind play."""
CERTAIN = 0.95
"""Enough instead of a story that it is invited to tell."""
_MAY = (Act.ASK, Act.INVITE, Act.PROPOSE, Act.CHECK)


@dataclass(frozen=True, slots=True)
class Recalled:
    """Something of its background that a sentence is about."""

    id: str
    question: str
    confidence: float


def may_recall(hearing: Hearing) -> list[Sentence]:
    """The sentences that the background may have an answer to."""
    if hearing.unclear:
        return []
    answered = {heard.quote for heard in hearing.answered}
    spoken = hearing.reading.readable
    offer = next((number for number, sentence in enumerate(spoken) if sentence.does(Act.PROPOSE)), len(spoken))
    # "Does that suit you?" behind an offer is about the offer.
    whole = [s for number, s in enumerate(spoken) if number <= offer or not is_elliptic(s.text)]
    may = [s for s in whole if s.does(*_MAY) or is_question(s)]
    return [s for s in may if not s.does(Act.RUDE) and s.text not in answered]


def recalled(
    case: CompiledCase,
    state: PersonaState,
    hearing: Hearing,
    said: Sequence[Sentence],
    found: Sequence[Sequence[Candidate]],
) -> tuple[Recalled, ...]:
    """What of the background the sentences bring to mind, each once, in the order of the turn.

    Args:
        case: the persona's.
        state: before the turn.
        hearing: the turn as the persona understands it.
        said: the sentences of `may_recall`.
        found: per sentence the topics and the background it may be about, as `Reader.beside` gives them.
    """
    chosen: dict[str, Recalled] = {}
    for sentence, candidates in zip(said, found, strict=True):
        best = next((each for each in candidates if _is_ready(case, state, hearing, each)), None)
        if best is None or best.id in chosen:
            continue
        topic = max((each.confidence for each in candidates if each.id in case.by_id), default=0.0)
        if best.confidence > topic and best.confidence >= _needed(state, hearing, sentence):
            chosen[best.id] = Recalled(best.id, sentence.text, best.confidence)
    return tuple(chosen.values())


def _is_ready(case: CompiledCase, state: PersonaState, hearing: Hearing, found: Candidate) -> bool:
    """Whether it is something of the background that can be said now, in words that were not used yet."""
    entry = case.background.get(found.id)
    if entry is None or state.worded.get(found.id, 0) >= len(entry.says):
        return False
    return gate_open(entry, state, hearing.rapport, 0.0)


def _needed(state: PersonaState, hearing: Hearing, sentence: Sentence) -> float:
    """How likely it has to be, beside what the sentence was understood as."""
    asked = [each for each in hearing.asked if each.question == sentence.text]
    if any(each.invited for each in asked):
        return CERTAIN
    return max((each.confidence for each in asked if each.topic_id not in state.said), default=LIKELY)
