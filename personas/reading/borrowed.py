"""Tells an agent's own words from words that the persona said, or would say.

What a persona knows, put in the agent's mouth, is no summary and no promise, whoever it was found out by: a summary
is in one's own words. So a sentence is borrowed if most of its meaningful words stand in runs of words that are the
persona's: from the wordings of the case, told or not, or from what it said earlier in the transcript. "I" and "you"
count as one word there, so that turning a sentence round does not make it one's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache

from personas.case.compiled import CompiledCase
from personas.text.memory import remembered
from personas.text.plain import plain
from personas.text.sentences import sentences
from personas.text.wording import FUNCTION_WORDS, tokens, words_of

RUN = 4
"""So many words in a row are no coincidence."""
MOST = 0.7
"""Share of the words that makes a sentence borrowed."""
_OWN_SUBJECTS = words_of("i we i'll we'll i'd we'd i'm we're i've we've let's")

_PERSONS = {
    **dict.fromkeys(("i", "me", "you", "we", "us", "he", "she", "they", "him", "them"), "p"),
    **dict.fromkeys(("my", "mine", "your", "yours", "our", "ours", "his", "her", "hers", "their", "theirs"), "p's"),
    **dict.fromkeys(("myself", "yourself", "himself", "herself", "themselves", "ourselves"), "pself"),
    **dict.fromkeys(("am", "are", "is", "be"), "is"),
    **dict.fromkeys(("was", "were"), "was"),
    **dict.fromkeys(("has", "have"), "have"),
    **dict.fromkeys(("does", "do"), "do"),
}
_CONTRACTED = {"'m": "is", "'re": "is", "'s": "is", "'ve": "have", "'d": "would", "'ll": "will"}

_REPORTED = re.compile(
    r"(?:(?:so|and|as|well|earlier),? )?you (?:have |just )?(?:told|said|say|mentioned)\b", re.IGNORECASE
)
_OWN_CLAUSE = re.compile(r"[,;:] (?:so|then|and|therefore|which is why) (?:i|we)\b", re.IGNORECASE)
"""What the agent concludes from what it repeats is its own."""
_QUOTED = re.compile(r"\"[^\"]*(?:\"|$)|^[^\"]*\"$")
"""Between two marks, or on the side of one that a sentence's end has left alone."""

_Words = tuple[str, ...]
Runs = Set[_Words]


class PersonaWords:
    """The persona's words up to a turn: those of its case, and those it has said."""

    def __init__(self, case: CompiledCase) -> None:
        self._turned: tuple[Runs, set[_Words]] = _runs_of_case(case, turned=True), set()
        self._plain: tuple[Runs, set[_Words]] = _runs_of_case(case, turned=False), set()

    def add(self, line: str) -> None:
        """Another line of the persona's."""
        for sentence in (line, *sentences(line)):
            self._turned[1].update(_turned_runs(sentence))
            self._plain[1].update(_runs(_words(sentence)))

    def borrowed(self, sentence: str) -> bool:
        """True if the meaningful words of a sentence are mostly the persona's."""
        # "You told me" is nobody's own, and what follows it is compared alone: its "I" is one word with that "you".
        report, told = _reported(sentence)
        before, words = _turned(report), _turned(told)
        own = set(_turned(_QUOTED.sub(" ", told)))
        known = [run or word not in own for word, run in zip(words, _covered(words, *self._turned), strict=True)]
        words, covered = (*before, *words), [*(True for _ in before), *known]
        meant = [word not in FUNCTION_WORDS and word not in _GRAMMAR for word in words]
        if not any(meant):
            return bool(words) and all(covered)
        return sum(c for c, m in zip(covered, meant, strict=True) if m) >= MOST * sum(meant)

    def verbatim(self, sentence: str) -> bool:
        """True if a sentence is the persona's, word for word; to grant a wish takes over its words but for who acts.

        So is what is said to be its words.
        """
        reported = _REPORTED.match(plain(sentence))
        if reported and not _OWN_CLAUSE.search(plain(sentence), reported.end()):
            return True
        words = _words(sentence)
        covered = _covered(words, *self._plain)
        added = [word for word, known in zip(words, covered, strict=True) if not known]
        return bool(words) and sum(covered) >= MOST * len(words) and _OWN_SUBJECTS.isdisjoint(added)


def formulas(turns: Sequence[Iterable[str]]) -> list[frozenset[str]]:
    """Per turn, those of its sentences that are said in other turns, too, word for word or in half of their words."""
    sentences_by_turn = [frozenset(sentences) for sentences in turns]
    runs = [frozenset[_Words]().union(*map(_turned_runs, spoken)) for spoken in sentences_by_turn]
    times = Counter(run for run_of_words in runs for run in run_of_words)
    several = frozenset(run for run, number in times.items() if number > 1)
    if not several:
        return [frozenset()] * len(sentences_by_turn)
    covered = {sentence: _covered(_turned(sentence), several) for sentence in frozenset().union(*sentences_by_turn)}
    return [
        frozenset(sentence for sentence in those if 2 * sum(covered[sentence]) > len(covered[sentence]))
        for those in sentences_by_turn
    ]


_GRAMMAR = frozenset(_PERSONS.values()) | frozenset(_CONTRACTED.values())


def _covered(words: _Words, *known: Runs) -> list[bool]:
    """Per word, whether it stands in a run that is known; a sentence shorter than a run must be known as a whole."""
    size = min(RUN, len(words))
    covered = [False] * len(words)
    for start in range(len(words) - size + 1):
        run = words[start : start + size]
        for line in known:
            if run in line:
                covered[start : start + size] = [True] * size
                break
    return covered


@lru_cache(maxsize=256)
def _runs_of_case(case: CompiledCase, *, turned: bool) -> frozenset[_Words]:
    read = _turned if turned else _words
    return frozenset().union(*(_runs(read(s)) for line in case.wordings for s in (line, *sentences(line))))


@remembered(8192)
def _turned_runs(text: str) -> frozenset[_Words]:
    """All runs of a text, every person the same."""
    return _runs(_turned(text))


def _runs(words: _Words) -> frozenset[_Words]:
    """All runs of a text; the text itself if it is shorter than one."""
    if len(words) < RUN:
        return frozenset((words,)) if words else frozenset()
    return frozenset(words[start : start + RUN] for start in range(len(words) - RUN + 1))


def _reported(sentence: str) -> tuple[str, str]:
    """The "you told me" with which a sentence begins, if it does, and the rest."""
    text = plain(sentence)
    report = _REPORTED.match(text)
    return (text[: report.end()], text[report.end() :]) if report else ("", text)


@remembered(8192)
def _words(text: str) -> _Words:
    return tuple(tokens(plain(text)))


@remembered(8192)
def _turned(text: str) -> _Words:
    """The words with every person the same, contractions written out."""
    turned: list[str] = []
    for word in _words(text):
        head, mark, tail = word.rpartition("'")
        long = _CONTRACTED.get(mark + tail) if head in _PERSONS or head in ("it", "that", "there", "who") else None
        parts = (head, long) if long else (word,)
        turned += [_PERSONS.get(part, part) for part in parts]
    return tuple(turned)
