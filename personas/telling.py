"""Which topics a persona's line tells, of those that were asked about, and in which sentence.

By a wording of the case, or by a sentence of the same meaning that is not one of the case's own harmless ones. It
depends on case, matcher, line and topic alone, so it is remembered: a line is searched once, however often
its conversation is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from personas.acts import split_sentences
from personas.compiled import CompiledCase, CompiledTopic, contains
from personas.matcher import Matcher
from personas.memory import Memory
from personas.understanding import KEPT_CHARS
from personas.wording import normal

__all__ = ["Told", "told"]

SAME_MEANING = 0.80
MAX_SENTENCES = 12
KEPT_ANSWERS = 32_768


@dataclass(frozen=True, slots=True, repr=False)
class Told:
    """Where a persona's line tells a topic, and whether in a wording of the case."""

    quote: str
    exact: bool


_Key = tuple[CompiledCase, Matcher, str, str]
"""Case, matcher, line and topic."""
_known: Memory[_Key, Told | None] = Memory(KEPT_ANSWERS)


def told(case: CompiledCase, matcher: Matcher, asked: Sequence[tuple[str, Sequence[str]]]) -> list[Mapping[str, Told]]:
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
        {topic: found for topic in topics if (found := known[case, matcher, line, topic]) is not None}
        for line, topics in asked
    ]


def _searched(case: CompiledCase, matcher: Matcher, keys: Sequence[_Key]) -> dict[_Key, Told | None]:
    found: dict[_Key, Told | None] = {}
    loose: dict[_Key, list[str]] = {}
    for key in keys:
        topic, line = case.by_id[key[3]], key[2]
        if contains(topic, normal(line)):
            found[key] = Told(_quote(topic, line), exact=True)
        else:
            loose[key] = _foreign_sentences(case, line)
    return found | _alike(case, matcher, loose)


def _quote(topic: CompiledTopic, line: str) -> str:
    """The sentence that tells the topic, or the whole line when the wording spans several."""
    return next((s for s in split_sentences(line) if contains(topic, normal(s))), line)


def _foreign_sentences(case: CompiledCase, line: str) -> list[str]:
    """Sentences of a persona's line that are not among the case's own harmless ones."""
    return [s for s in split_sentences(line)[:MAX_SENTENCES] if normal(s) not in case.harmless]


def _alike(case: CompiledCase, matcher: Matcher, loose: Mapping[_Key, list[str]]) -> dict[_Key, Told | None]:
    """What the lines tell in other words than the case's."""
    sentences = list(dict.fromkeys(s for own in loose.values() for s in own))
    if not sentences:
        return dict.fromkeys(loose)
    row = dict(zip(sentences, matcher.cosine(sentences, case.wordings), strict=True))
    found: dict[_Key, Told | None] = {}
    for key, own in loose.items():
        span = case.by_id[key[3]].wording_span
        quote = next((s for s in own if row[s][span.start : span.stop].max() >= SAME_MEANING), None)
        found[key] = None if quote is None else Told(quote, exact=False)
    return found
