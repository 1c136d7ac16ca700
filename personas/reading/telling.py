"""Finds the topics that a persona's line tells, of those that were asked about, and the sentence of each.

By a wording of the case, or by a sentence of the same meaning, or of a similar one with its codes and names, that
is not one of the case's own for something else. A line with an evasion tells nothing in other words. It depends
on case, matcher, line and topic alone, so it is remembered: a line is searched once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase, CompiledTopic, contains
from personas.case.library import load_temperaments
from personas.case.marks import agrees, digits_of, doubts
from personas.reading.matcher import Matcher
from personas.text.memory import KEPT_CHARS, Memory
from personas.text.sentences import sentences
from personas.text.wording import normal, tokens

__all__ = ["ToldTopic", "told"]

SAME_MEANING = 0.80
SIMILAR_MEANING = 0.68
"""Enough for a sentence that affirms what the wording does, with the same numbers."""
LONG_WORDS = 3
"""A sentence of more words than this is recognised inside a longer one."""
MAX_SENTENCES = 12
KEPT_ANSWERS, KEPT_BYTES = 32_768, 16_000_000


@dataclass(frozen=True, slots=True, repr=False)
class ToldTopic:
    """The place where a persona's line tells a topic, and whether in a wording of the case."""

    quote: str
    exact: bool


_Key = tuple[CompiledCase, Matcher, str, str]
"""Case, matcher, line and topic."""
_known: Memory[_Key, ToldTopic | None] = Memory(
    KEPT_ANSWERS,
    size_bytes=KEPT_BYTES,
    cost=lambda key, told_topic: len(key[2]) + (len(told_topic.quote) if told_topic else 0),
)


def told(
    case: CompiledCase, matcher: Matcher, asked: Sequence[tuple[str, Sequence[str]]]
) -> list[Mapping[str, ToldTopic]]:
    """Per line and the topics asked about before it: those that it tells.

    Blocking, because the matcher may run a model, at most once for all lines.
    """
    keys = [(case, matcher, line, topic) for line, topics in asked for topic in topics]
    known = _known.recall(keys)
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        fresh = _searched(case, matcher, missing)
        _known.keep({key: value for key, value in fresh.items() if len(key[2]) <= KEPT_CHARS})
        known |= fresh
    return [
        {topic: known_topic for topic in topics if (known_topic := known[case, matcher, line, topic]) is not None}
        for line, topics in asked
    ]


def _searched(case: CompiledCase, matcher: Matcher, keys: Sequence[_Key]) -> dict[_Key, ToldTopic | None]:
    topics_told: dict[_Key, ToldTopic | None] = {}
    loose: dict[_Key, list[str]] = {}
    for key in keys:
        topic, line = case.by_id[key[3]], key[2]
        if contains(topic, normal(line)):
            topics_told[key] = ToldTopic(_quote(topic, line), exact=True)
        else:
            loose[key] = _foreign_sentences(case, topic, line)
    return topics_told | _alike(case, matcher, loose)


def _quote(topic: CompiledTopic, line: str) -> str:
    """The sentence that tells the topic, or the whole line when the wording spans several."""
    return next((s for s in sentences(line) if contains(topic, normal(s))), line)


def _foreign_sentences(case: CompiledCase, topic: CompiledTopic, line: str) -> list[str]:
    """Sentences of a persona's line that are not the case's own for something else; none if the line evades."""
    whole = normal(line)
    if any(evasion in whole for evasion in (*_withheld(), *_evasions(topic))):
        return []
    return [s for s in sentences(line)[:MAX_SENTENCES] if not _is_own(case, topic, normal(s))]


@cache
def _withheld() -> tuple[str, ...]:
    """The refusals of personas, in normal form."""
    return tuple(normal(line) for temperament in load_temperaments().values() for line in temperament.phrases.withheld)


def _evasions(topic: CompiledTopic) -> list[str]:
    halves = (line for line in (topic.partial, topic.answer) if line)
    return [normal(sentence) for line in halves for sentence in sentences(line)]


def _is_own(case: CompiledCase, topic: CompiledTopic, sentence: str) -> bool:
    """True if a sentence is a harmless one of the case or tells another topic, with or without a lead-in."""
    if sentence in case.harmless:
        return True
    owners = [ids for own, ids in case.told_in.items() if own == sentence or (_is_long(own) and own in sentence)]
    if owners:
        return not any(topic.id in ids for ids in owners)
    return any(_is_long(own) and own in sentence for own in case.harmless)


def _is_long(sentence: str) -> bool:
    return sentence.count(" ") > LONG_WORDS


def _alike(case: CompiledCase, matcher: Matcher, loose: Mapping[_Key, list[str]]) -> dict[_Key, ToldTopic | None]:
    """The topics that the lines tell in other words than the case's."""
    texts = list(dict.fromkeys(s for own in loose.values() for s in own))
    if not texts:
        return dict.fromkeys(loose)
    row = dict(zip(texts, matcher.cosine(texts, case.wordings), strict=True))
    topics_told: dict[_Key, ToldTopic | None] = {}
    for key, own in loose.items():
        topic = case.by_id[key[3]]
        quote = next((s for s in own if _tells(topic, s, row[s])), None)
        topics_told[key] = None if quote is None else ToldTopic(quote, exact=False)
    return topics_told


def _tells(topic: CompiledTopic, sentence: str, row: NDArray[np.float64]) -> bool:
    """True if a sentence tells a topic, given its cosines with every wording of the case."""
    span = topic.wording_span
    cosines = row[span.start : span.stop]
    words, best = frozenset(tokens(sentence)), row.max()
    for wording, marks, cosine in zip(topic.says, topic.marks, cosines, strict=True):
        if doubts(sentence, wording):
            continue
        if cosine >= SAME_MEANING:
            return True
        marked = bool(marks) and marks <= words
        # Of several topics that a sentence is like, it tells the one it is most like, with that one's numbers.
        similar = cosine >= SIMILAR_MEANING and cosine >= best and digits_of(wording) <= words
        if (marked or similar) and agrees(sentence, wording):
            return True
    return False
