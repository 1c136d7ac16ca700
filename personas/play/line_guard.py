"""Checks a line that somebody else worded for a persona, before it is said instead of the engine's own.

Whoever worded it knew what the stage direction holds, and no other fact. A line is accepted only if it tells what the
direction requires; earns what the engine's line earns, as replaying the conversation hears both; is near to no fact
that is untold; has no number and no name that nobody named; and stays in the persona's part. It may reject a good
line: then the engine's is said. What a line adds in passing is in no case and earns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase
from personas.case.marks import agrees, digits_of
from personas.hearing.amounts import numbers_in
from personas.hearing.state import PersonaState
from personas.hearing.types import credits_of
from personas.play.direction import Character, StageDirection
from personas.play.guard import LeakError, check_reply
from personas.play.simulator import Reply
from personas.play.voice import digest_of
from personas.reading.matcher import Matcher
from personas.reading.telling import ToldTopic, told
from personas.text.sentences import sentences
from personas.text.wording import content_words, normal, tokens, words_of

__all__ = ["LineGuard", "Objection"]

MOST_WORDS = 60
MAX_GROWTH = 1.6
"""A line has at most so many words, or so many times as many as what it has to tell."""
COVERED = 0.55
"""The least cosine of something that has to be told with a sentence of the line, or with the whole of it."""
NEAR_UNTOLD = 0.6
"""The cosine from which a sentence is about an untold fact, if nothing that may be said is as near."""
RELATED = 0.25
"""The least cosine of a sentence with one that was said or may be said: what has to do with nothing is not harmless."""
STRAY_WORDS = 3
"""A sentence with fewer words that mean something is harmless ("Is that bad?")."""
LARGE = 0.12
"""So large a share of words with a capital inside sentences is a language that writes nouns so: no names."""
ECHO = 0.8
"""So alike to what the agent or the persona has just said, a line is its echo."""

_DATES = words_of(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december"""
)
_FIRST_PERSON = words_of("i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][^\W\d_A-Z]+\b")
_MARKUP = re.compile(r"[\n\r\t*_#<>\[\]{}|`~\\]")
_SPEAKER = re.compile(r"^\W*((?:\w+ ){0,3}\w+)\W*:\s")
_PLAIN = re.compile(r"\d+k?")
_PARTIES = words_of("you other me persona character agent assistant user system line")
_DRIFT = re.compile(
    r"\b(?:how (?:can|may|could) i (?:help|assist|support|be of)|can i (?:help|assist)|i can (?:help|assist) you|"
    r"(?:happy|glad|pleased|here) to (?:help|assist)|let me (?:help|assist|know if)|i(?:'ll| will) help you|"
    r"anything else (?:i can|you(?:'d| would)? (?:like|need))|feel free to|what brings you|"
    r"i (?:recommend|suggest|advise)|you should (?:consider|try|see|seek))\b"
)
_META = re.compile(
    r"\b(?:rubric|prompts?|instructions?|language model|ai|a\.i\.|llm|chatbot|assistant|simulat\w+|role-?play\w*|"
    r"persona|criteri\w+|scor(?:e|es|ing)|rewards?|grad(?:e|er|ing)|evaluat\w+|template|utterance|json)\b"
)


class Objection(StrEnum):
    """The reason why a line is not said."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    FORM = "form"
    """More than one plain line: markup, a speaker's name, several paragraphs."""
    REPEATED = "repeated"
    OUT_OF_PART = "out_of_part"
    """Talk about the simulation, or an offer of help: the agent's part."""
    LEAK = "leak"
    """It tells, or comes near to, a fact that is not told now."""
    NOT_TOLD = "not_told"
    """Something that has to be told is missing, or turned into its opposite."""
    STRAYS = "strays"
    """A sentence that has to do with nothing that was said or is to be said."""
    NUMBERS = "numbers"
    """A number or a date that nobody named."""
    NAMES = "names"
    """A name that nobody named."""


class LineGuard:
    """Checks lines for one persona. Blocking, because the matcher may run a model."""

    def __init__(self, case: CompiledCase, character: Character, matcher: Matcher) -> None:
        self._case = case
        self._character = character
        self._matcher = matcher

    def objection(self, before: PersonaState, reply: Reply, direction: StageDirection, text: str) -> Objection | None:
        """Object to saying `text`, or None; `before` is the state before the reply."""
        objection = _form(self._character, direction, text) or self._part(direction, text)
        if objection is not None:
            return objection
        if digest_of(text) in before.lines or _echoes(direction, text):
            return Objection.REPEATED
        try:
            check_reply(self._case, reply.state, text)
        except LeakError:
            return Objection.LEAK
        sources = self._sources(direction)
        if not _numbers(text) <= _numbers_of(sources):
            return Objection.NUMBERS
        if not _names(direction, text) <= self._known_names(sources):
            return Objection.NAMES
        return self._content(before, reply, direction, text)

    def _part(self, direction: StageDirection, text: str) -> Objection | None:
        """Object to words that leave the persona's part."""
        known, now = normal(" ".join(self._sources(direction))), text.lower().replace("\u2019", "'")
        strays = any(normal(match[0]) not in known for pattern in (_DRIFT, _META) for match in pattern.finditer(now))
        return Objection.OUT_OF_PART if strays else None

    def _sources(self, direction: StageDirection) -> list[str]:
        """Everything that a line may take a number or a name from."""
        character = self._character
        figures = (direction.own_figure, direction.their_figure, direction.agreed)
        return [
            *(line.text for line in direction.said),
            *(*direction.tell, *direction.may, *direction.told),
            *(*_says(character), character.role, character.scene, character.name or "", direction.line),
            *(f"{figure:g}" for figure in figures if figure is not None),
        ]

    def _known_names(self, sources: Iterable[str]) -> frozenset[str]:
        words = {part for each in sources for word in tokens(each) for part in (word, word.removesuffix("'s"))}
        return self._case.common_words | words

    def _content(self, before: PersonaState, reply: Reply, direction: StageDirection, text: str) -> Objection | None:
        """Object to what is missing of what has to be told, and to what is told beside it."""
        topics = tuple(self._case.by_id)
        line, other = told(self._case, self._matcher, [(reply.text, topics), (text, topics)])
        fresh, other_fresh = _unsaid(line, before), _unsaid(other, before)
        if not fresh.keys() <= other_fresh.keys() or not self._covers(direction, text):
            return Objection.NOT_TOLD
        if not other_fresh.keys() <= fresh.keys() or self._nears(reply, direction, text):
            return Objection.LEAK
        if not self._relates(direction, text):
            return Objection.STRAYS
        # Where more is told than a turn is credited with, those in the case's own words come first.
        exact = all(each.exact == other_fresh[topic].exact for topic, each in fresh.items())
        return None if exact or len(fresh) <= credits_of(reply.hearing) else Objection.NOT_TOLD

    def _covers(self, direction: StageDirection, text: str) -> bool:
        """True if everything that has to be told is in it: its numbers, its meaning, its yes or no."""
        if not direction.tell:
            return True
        if not _numbers_of(direction.tell) <= _numbers(text):
            return False
        said = [*sentences(text), text]
        cosine = self._matcher.cosine(said, direction.tell)
        return all(_tells(line, said, cosine[:, n]) for n, line in enumerate(direction.tell))

    def _nears(self, reply: Reply, direction: StageDirection, text: str) -> bool:
        """True if a sentence is about a fact that is not told, and nearer to it than to what may be said."""
        untold = [topic for topic in self._case.topics if topic.id not in reply.state.said]
        columns = [n for topic in untold for n in range(topic.wording_span.start, topic.wording_span.stop)]
        if not columns:
            return False
        said = [each for each in sentences(text) if content_words(each)]
        allowed = self._allowed(direction)
        near = self._matcher.cosine(said, self._case.wordings)[:, columns].max(axis=1, initial=0.0)
        safe = self._matcher.cosine(said, allowed).max(axis=1, initial=0.0)
        return bool(np.any((near >= NEAR_UNTOLD) & (near > safe)))

    def _relates(self, direction: StageDirection, text: str) -> bool:
        """True if every sentence has something to do with the agent's last words or with what may be said."""
        heard = direction.said[-1].text
        lines = [*self._allowed(direction), heard, *sentences(heard)]
        known = frozenset(word for line in lines for word in content_words(line))
        words = {each: set(content_words(each)) for each in sentences(text)}
        new = [each for each, own in words.items() if len(own) >= STRAY_WORDS and not known & own]
        return not new or bool(np.all(self._matcher.cosine(new, lines).max(axis=1) >= RELATED))

    def _allowed(self, direction: StageDirection) -> list[str]:
        """What may be said, sentence by sentence."""
        own = (line.text for line in direction.said if line.by_persona)
        lines = (*direction.tell, *direction.may, *direction.told, *_says(self._character), direction.line, *own)
        return list(dict.fromkeys(sentence for line in lines for sentence in (*sentences(line), line)))


def _says(character: Character) -> list[str]:
    return [answer.says for answer in character.life]


def _tells(line: str, said: Sequence[str], cosines: NDArray[np.float64]) -> bool:
    """True if a sentence says what a line says, or repeats it, and affirms or denies as it does."""
    own = frozenset(content_words(line))
    shared = [2 * len(own & frozenset(content_words(each))) >= len(own) for each in said]
    alike = [cosine >= COVERED or words for cosine, words in zip(cosines, shared, strict=True)]
    return any(is_alike and agrees(each, line) for is_alike, each in zip(alike, said, strict=True))


def _unsaid(found: Mapping[str, ToldTopic], before: PersonaState) -> dict[str, ToldTopic]:
    return {topic: each for topic, each in found.items() if topic not in before.said}


def _form(character: Character, direction: StageDirection, text: str) -> Objection | None:
    if not tokens(text):
        return Objection.EMPTY
    due = len(" ".join((*direction.tell, *direction.may)).split())
    if len(text.split()) > max(MOST_WORDS, MAX_GROWTH * due + MOST_WORDS / 2):
        return Objection.TOO_LONG
    speaker = _SPEAKER.search(text)
    labels = _PARTIES | set(tokens(f"{character.role} {character.name or ''}"))
    is_label = speaker is not None and set(tokens(speaker[1])) <= labels
    return Objection.FORM if _MARKUP.search(text) or is_label else None


def _echoes(direction: StageDirection, text: str) -> bool:
    """True if it says what was said just now, by the agent or by the persona itself."""
    words = content_words(text)
    last = [content_words(line.text) for line in direction.said[-2:]]
    return len(words) > 4 and any(SequenceMatcher(None, words, each, False).ratio() >= ECHO for each in last)


def _numbers_of(lines: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(_numbers, lines))


def _numbers(text: str) -> frozenset[str]:
    """The numbers and dates of a text in one form; "one" alone counts nothing."""
    lower = text.lower()
    values = {f"{value:g}" for value, end in numbers_in(lower) if value != 1 or not lower[:end].endswith("one")}
    # Of "21st" and "7b" the figures, too; "9k" is a number already.
    codes = {code for word in digits_of(text) if not _PLAIN.fullmatch(word) for code in re.findall(r"\d+", word)}
    return frozenset(values | codes | (_DATES & set(tokens(text))))


def _names(direction: StageDirection, text: str) -> frozenset[str]:
    """The words of a line that may be names; none in a language that writes all nouns with a capital."""
    heard = direction.said[-1].text
    if len(_NAME.findall(heard)) > LARGE * len(heard.split()):
        return frozenset()
    return frozenset(name.lower() for name in _NAME.findall(text))
