"""Checks another author's wording of a persona's line before it may be said instead of the line.

The simulator decides what is told; somebody else may find the words, and is given nothing but the persona's public
manner, what was said so far and the line itself. A wording is accepted only if it tells exactly the topics that the
line tells, as replaying the conversation hears them, so that the reward is the same with both; tells no number,
name or matter that is not in the line; and stays in the persona's part. It may reject a good wording: then the line
is said as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase
from personas.case.marks import agrees, digits_of
from personas.case.temperament import Temperament
from personas.hearing.heard import credits_of
from personas.hearing.state import PersonaState
from personas.play.guard import LeakError, check_reply
from personas.play.simulator import Reply
from personas.play.voice import digest_of
from personas.reading.acts import Act
from personas.reading.matcher import Matcher
from personas.reading.telling import ToldTopic, told
from personas.text.sentences import sentences
from personas.text.wording import content_words, stem, tokens, words_of

MAX_EARLIER = 12
"""Lines of the persona that an author is shown, the latest ones."""
WORDS_TO_SPARE = 8
MAX_GROWTH = 1.6
SUPPORT = 0.45
"""The least cosine of a sentence with one of the other text, or with the whole of it, to be about the same."""
CLOSE = 0.05
"""Two sentences that a third is alike to within this are both its counterparts."""
SPELT = 5
ALMOST = 0.75
"""Words of so many letters that are alike to this degree, and are no forms of one word, are a slip."""
NEW_WORDS = 3
NEW_SHARE = 0.5
"""How many content words a wording may have that nobody said: a few, and half as many as the line has."""

_NUMBERS = words_of(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands million first
    second third fourth fifth sixth seventh eighth ninth tenth half quarter dozen twice once double triple monday
    tuesday wednesday thursday friday saturday sunday january february march april june july august september october
    november december noon midnight yesterday tomorrow tonight before after"""
)
_FILLERS = words_of(
    """hm hmm well fine right okay ok alright sure yes yeah yep no nope honestly look listen so anyway ah oh uh um er
    thanks thank sorry please god goodness gosh actually frankly true maybe perhaps exactly sir madam doctor"""
)
_FIRST_PERSON = words_of("i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours")
_HARDLY = re.compile(r"\b(?:hardly|barely|scarcely|rarely|seldom|little|few)\b")
"""Half a denial: it goes with a yes and with a no."""
_JOINTS = re.compile(r"[,;:\u2013\u2014]\s+|\s+(?:and|but|because|so|though|although|while|plus)\s+", re.IGNORECASE)
"""Where one thing said ends and another begins."""
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][^\W\d_]+\b")
_MARKUP = re.compile(r"[\n\r\t*_#<>\[\]{}|`~\\]")
_SPEAKER = re.compile(r"^\W*\w+(?: \w+){0,2}\W*:\s")
_DRIFT = re.compile(
    r"\b(?:how (?:can|may|could) i (?:help|assist|support|be of)|can i (?:help|assist)|i can (?:help|assist) you|"
    r"(?:happy|glad|pleased|here) to (?:help|assist)|let me (?:help|assist|know if)|i(?:'ll| will) help you|"
    r"anything else (?:i can|you(?:'d| would)? (?:like|need))|feel free to|what brings you|"
    r"i (?:recommend|suggest|advise)|you should (?:consider|try|see|seek))\b"
)
_META = re.compile(
    r"\b(?:rubric|prompts?|instructions?|language model|ai|a\.i\.|llm|chatbot|assistant|simulat\w+|role-?play\w*|"
    r"persona|criteri\w+|scor(?:e|es|ing)|rewards?|grad(?:e|er|ing)|evaluat\w+|template|wording|reword\w*|json)\b"
)


class Objection(StrEnum):
    """The reason why a wording is not said."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    FORM = "form"
    """More than one plain line: markup, a speaker's name, several paragraphs."""
    REPEATED = "repeated"
    OUT_OF_PART = "out_of_part"
    """Talk about the simulation, an offer of help, a question or a point of view that the line does not have."""
    LEAK = "leak"
    OTHER_TOPICS = "other_topics"
    """Tells more or less than the line."""
    OTHER_FACTS = "other_facts"
    """Numbers, names or matters that are not in the line, a part of it left out, or a no for a yes."""


@dataclass(frozen=True, slots=True, repr=False)
class Cue:
    """All that an author of words may know. The persona's name is not in it: in some cases it is a fact to find out."""

    role: str
    manner: str
    earlier: tuple[str, ...]
    """What the persona said so far, the latest last."""
    heard: str
    """What the agent said now."""
    line: str
    """What the persona is about to say."""


class Phrasing:
    """Cues for, and checks of, other wordings of one persona's lines. Blocking, because the matcher may run a model."""

    def __init__(self, case: CompiledCase, temperament: Temperament, matcher: Matcher) -> None:
        self._case = case
        self._temperament = temperament
        self._matcher = matcher

    def cue(self, reply: Reply, heard: str, earlier: Sequence[str]) -> Cue | None:
        """The cue that an author is given; None where the agent's words are not fit to be shown to one."""
        if reply.hearing.unclear or reply.hearing.reading.any(Act.META, Act.UNREADABLE):
            return None
        manner = f"{self._temperament.name}: {self._temperament.description}"
        return Cue(self._case.role, manner, tuple(earlier[-MAX_EARLIER:]), heard, reply.text)

    def objection(self, before: PersonaState, reply: Reply, cue: Cue, text: str) -> Objection | None:
        """Object to saying `text` instead of the reply's line, or None; `before` is the state before the reply."""
        found = _form(cue.line, text) or _part(cue.line, text)
        if found is not None:
            return found
        if digest_of(text) in before.lines:
            return Objection.REPEATED
        try:
            check_reply(self._case, reply.state, text)
        except LeakError:
            return Objection.LEAK
        if not self._tells_the_same(before, reply, text):
            return Objection.OTHER_TOPICS
        known = (cue.line, cue.heard, *cue.earlier)
        strays = _adds(known, cue.line, text, self._case.common_words) or _distorts(cue.line, text)
        return Objection.OTHER_FACTS if strays or not self._is_about_the_same(cue.line, text) else None

    def _tells_the_same(self, before: PersonaState, reply: Reply, text: str) -> bool:
        """True if replay gives the same credit for both, and nothing that the line tells is missing."""
        topics = tuple(self._case.by_id)
        line, other = told(self._case, self._matcher, [(reply.text, topics), (text, topics)])
        if not line.keys() <= other.keys():
            return False
        fresh, other_fresh = _unsaid(line, before), _unsaid(other, before)
        if fresh.keys() != other_fresh.keys():
            return False
        # Where more is told than a turn is credited with, those in the case's own words come first.
        return len(fresh) <= credits_of(reply.hearing) or all(
            each.exact == other_fresh[topic].exact for topic, each in fresh.items()
        )

    def _is_about_the_same(self, line: str, text: str) -> bool:
        """True if every sentence of either has a counterpart in the other, and affirms or denies as that does.

        A part of a sentence that shares no word with the line needs one, too: it may have been added.
        """
        own, new = sentences(line), sentences(text)
        parts = [part for part in _parts(text) if not _gist(part) & _gist(line)]
        cosine = self._matcher.cosine([*new, text, *parts], [*own, line, *_parts(line)])
        return (
            all(_shares(s, text) or cosine[: len(new) + 1, n].max() >= SUPPORT for n, s in enumerate(own))
            and all(_shares(s, line) or cosine[n].max() >= SUPPORT for n, s in enumerate([*new, "", *parts]))
            and all(_affirms_alike(s, own, cosine[n]) for n, s in enumerate(new) if _gist(s))
        )


def adopt(reply: Reply, text: str) -> Reply:
    """The reply in other words. The line itself counts as used, so that it is not the next one to be reworded."""
    return replace(reply, text=text, state=replace(reply.state, lines=(*reply.state.lines, digest_of(text))))


def _unsaid(found: Mapping[str, ToldTopic], before: PersonaState) -> dict[str, ToldTopic]:
    return {topic: each for topic, each in found.items() if topic not in before.said}


def _form(line: str, text: str) -> Objection | None:
    if not tokens(text):
        return Objection.EMPTY
    if len(text.split()) > MAX_GROWTH * len(line.split()) + WORDS_TO_SPARE or len(text) > 2 * len(line) + 200:
        return Objection.TOO_LONG
    if _MARKUP.search(text) or (_SPEAKER.search(text) and not _SPEAKER.search(line)):
        return Objection.FORM
    return None


def _part(line: str, text: str) -> Objection | None:
    """Object to words that leave the part that the line plays."""
    was, now = line.lower(), text.lower().replace("\u2019", "'")
    strays = any(pattern.search(now) and not pattern.search(was) for pattern in (_DRIFT, _META))
    asks = "?" in text and "?" not in line
    loses_itself = bool(_FIRST_PERSON & set(tokens(line))) and not _FIRST_PERSON & set(tokens(text))
    return Objection.OUT_OF_PART if strays or asks or loses_itself else None


def _adds(known: Sequence[str], line: str, text: str, common: frozenset[str]) -> bool:
    """True if it has numbers, names or many words that are not in the line or, but for numbers, nobody said."""
    if _figures(text) != _figures(line):
        return True
    heard = {part for each in known for word in tokens(each) for part in (word, word.removesuffix("'s"))}
    if {name.lower() for name in _NAME.findall(text)} - heard - common:
        return True
    new = _gist(text) - frozenset().union(*map(_gist, known))
    return len(new) > NEW_WORDS + NEW_SHARE * len(_gist(line))


def _figures(text: str) -> frozenset[str]:
    return digits_of(text) | (_NUMBERS & set(tokens(text)))


def _gist(text: str) -> frozenset[str]:
    """The stems of what a text says, without small words and possessive endings."""
    return frozenset(stem(word.removesuffix("'s")) for word in content_words(text) if word not in _FILLERS)


def _shares(sentence: str, other: str) -> bool:
    """True if at least half of what a sentence says is said in so many words in the other text."""
    own = _gist(sentence)
    return 2 * len(own & _gist(other)) >= len(own)


def _parts(text: str) -> list[str]:
    return [part for sentence in sentences(text) for part in _JOINTS.split(sentence)]


def _affirms_alike(sentence: str, own: Sequence[str], row: NDArray[np.float64]) -> bool:
    """True if a sentence affirms or denies as the sentence of the line does that it is most like."""
    close = row[: len(own)].max() - CLOSE
    nearest = [each for each, cosine in zip(own, row, strict=False) if cosine >= close]
    return any(_HARDLY.search(f"{sentence} {each}".lower()) or agrees(sentence, each) for each in nearest)


def _distorts(line: str, text: str) -> bool:
    """True if a word of the line is replaced by one that is spelt almost like it."""
    lost, new = ({word.removesuffix("'s") for word in content_words(each)} for each in (line, text))
    lost, new = lost - new, new - lost
    return any(
        len(was) >= SPELT and stem(was) != stem(now) and SequenceMatcher(None, was, now, False).ratio() >= ALMOST
        for was in lost
        for now in new
    )
