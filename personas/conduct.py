"""How an agent behaves towards the persona, as far as it counts for a reward; stricter than what the persona feels.

A text that is added to a conversation may cost, never pay. So what earns is counted only where it answers: a remark
that stands word for word in several turns is a formula, thanks and praise that take nothing up fit anybody, and in an
interrogation nothing is heard. What costs is counted wherever it stands: an offer beside it, or a question that was
asked before, takes back nothing, and noise or talk about the simulation hides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from personas.acts import Kind, read_turn
from personas.hearing import Hearing, is_new
from personas.manners import COURTESY, FEELING
from personas.state import PersonaState
from personas.understanding import Comfort, Understood
from personas.wording import content_stems

TAKEN_UP = 2
"""So many meaningful words of the persona's make thanks or praise an answer to it."""


@dataclass(frozen=True, slots=True)
class Acts:
    """How often the agent behaved in a way the persona notices."""

    rude: int = 0
    empathy: int = 0
    repeated_question: int = 0
    interrogation: int = 0
    open_question: int = 0
    off_topic: int = 0


def as_meant(text: str) -> str:
    """What is said and asked in a turn, without the noise beside it: what costs is read from this, too."""
    reading = read_turn(text)
    spoken = [s.text for s in reading.sentences if s.kind in (Kind.QUESTION, Kind.STATEMENT)]
    return text if len(spoken) == len(reading.sentences) else "\n".join((*spoken, *reading.buried))


def talks_past(state: PersonaState, hearing: Hearing, meant: Understood) -> bool:
    """Whether a turn asks about nothing of the matter, but for what it asked before.

    Of too many questions to compare, the rest are about something else.
    """
    stray = any(question.stray for question in meant.questions)
    if hearing.unclear or not (stray or any(s.kind is Kind.QUESTION for s in hearing.reading.rest)):
        return False
    fresh = any(asked.topic_id not in state.asked for asked in hearing.asked)
    return hearing.reading.interrogation or not fresh


def consoling(opening: str | None, turns: Iterable[tuple[Understood, Collection[str], str | None]]) -> Iterator[bool]:
    """Per turn, with its own sentences and the persona's answer to it, whether it shows empathy."""
    heard, told = list[str](), content_stems(opening or "")
    for meant, own, answer in turns:
        answering = (c.gist for c in meant.comforts if c.sentence in own and _answers(c, told))
        fresh = next((gist for gist in answering if is_new(gist, heard)), None)
        yield fresh is not None
        heard += [fresh] if fresh is not None else []
        told = content_stems(answer or "")


def merely_polite(sentence: str) -> bool:
    """Whether a sentence is thanks or praise and nothing else."""
    low = sentence.lower()
    polite, rest = COURTESY.search(low) and not FEELING.search(low), content_stems(COURTESY.sub(" ", low))
    return bool(polite) and len(rest) < TAKEN_UP


def _answers(comfort: Comfort, told: frozenset[str]) -> bool:
    """Whether a remark names a feeling, or takes up what was just told."""
    own = COURTESY.sub(" ", comfort.sentence.lower())
    return not comfort.courteous or len(content_stems(own) & told) >= TAKEN_UP
