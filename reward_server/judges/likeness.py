"""Whether a sentence is more like pleas with a judge than like what agents say at work: for pleas no pattern knows.

The text encoder compares it with exemplars of both (`exemplars/*.txt`), which kernel ridge regression on +1 and -1
weighs: what a sentence has of each is exp(REACH * (cosine - 1)), so near exemplars count far more than distant ones.
Nothing is trained ahead: the weights follow from the exemplars and the encoder, and whoever adds a line changes both
the weights and the version.

It reads whole sentences, the clauses of a sentence and stretches of a long one (a plea may be glued to honest words),
neighbouring sentences and runs of scraps (it may be spread over them); and each text as it stands as well as with its
words read apart (`personas.joints`). It errs on either side; what it leaves out costs an agent the credit for those
words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby, pairwise
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from personas.disguise import undisguised
from personas.joints import unglued
from personas.matcher import Matcher
from personas.wording import plain

REACH, RIDGE = 3.0, 0.1
SENTENCE, CLAUSE, PAIR = 0.12, 0.45, 0.45
"""From which score on it is a plea; exemplars of pleas have about 1, honest ones about -1. Chosen so that less than one
in a hundred honest sentences is taken for one in each set of `benchmarks.pleas`. A clause has less to go by than a
sentence, and a pair is a second chance to be mistaken."""
NEARLY = -0.2
"""Two sentences are read together where one of them has at least this score; far cheaper than all pairs."""
LEAST_WORDS, LEAST_CLAUSE, LEAST_LETTERS = 3, 4, 5
"""What is shorter has too little meaning. Of scripts that are written without spaces, letters are counted."""
LONGEST = 300
"""Characters of a clause, a pair or a run; the encoder reads no more than the beginning of a long text."""
STRETCH = 10
"""Words of a stretch, about as many as a plea has; the next one begins in the middle of it."""

_SEAM = re.compile(
    r"[,;:()\u2013\u2014\n\uff0c\uff1b]+\s*|\s-{1,3}\s|(?<=[a-z][.!?])(?=[A-Z])|\s(?=(?i:and|but|which|because|while|since|so|as)\s)"
    r"|(?<=[a-z])\s(?=(?:You|We|The|This|That|It|What|How|When|Where|Can|Could|Do|Did|Is|Are|My|Your|Please|Thank)\s)"
)
_STOP = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]")
_INSIDE = re.compile(r"(?<=[a-z])(?=[A-Z][a-z'])")
_MARKS = re.compile(r"[*_#`~>|]+")
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[^\W\d_\x00-\u06ff]")

Scores = NDArray[np.float64]


@runtime_checkable
class _KnowsAnchors(Protocol):
    """A matcher that can compare authored texts with each other without encoding them anew."""

    def among(self, anchors: Sequence[str]) -> Scores:
        """As `cosine` of the anchors with themselves."""


class Likeness:
    """Tells pleas from talk by a matcher."""

    def __init__(
        self, matcher: Matcher, pleas: Sequence[str] | None = None, honest: Sequence[str] | None = None
    ) -> None:
        """Compare by the packaged exemplars, or by others."""
        self._matcher = matcher
        self._pleas = exemplars("pleas") if pleas is None else tuple(pleas)
        self._exemplars = (*self._pleas, *(exemplars("honest") if honest is None else honest))
        self._weights: Scores | None = None
        self._weighing = Lock()

    @property
    def version(self) -> str:
        """Follows the exemplars and the encoder, whose vectors decide."""
        told = "\n".join((str(len(self._pleas)), *self._exemplars))
        return f"{hashlib.sha256(told.encode()).hexdigest()[:12]}/{self._matcher.version}"

    def left_of(self, sentences: Sequence[str]) -> str:
        """What is left of the sentences of one text, in their order; blocking, because the matcher may run a model."""
        clauses = [_clauses(sentence) for sentence in sentences]
        stretches = {clause: _stretches(clause) for parts in clauses for clause in parts}
        scores = self._scores([*sentences, *stretches, *(each for some in stretches.values() for each in some)])
        alone = [scores.get(sentence, -1.0) for sentence in sentences]
        spread = self._spread(sentences, alone)
        glued = {clause for clause, some in stretches.items() if any(scores.get(each, -1.0) >= CLAUSE for each in some)}
        return "".join(
            clause
            for number, parts in enumerate(clauses)
            if alone[number] < SENTENCE and number not in spread
            for clause in _left(parts, scores)
            if clause not in glued
        )

    def _spread(self, sentences: Sequence[str], alone: Sequence[float]) -> set[int]:
        """The numbers of those that are a plea together with others next to them."""
        together = {(number, number + 2): PAIR for number, near in enumerate(pairwise(alone)) if max(near) >= NEARLY}
        # What was cut by empty lines or by a stop behind each word is one sentence.
        cut = [number for number, sentence in enumerate(sentences[:-1]) if not _STOP.search(sentence)]
        together |= {(number, number + 2): SENTENCE for number in cut} | dict.fromkeys(_runs(sentences), SENTENCE)
        texts = {
            span: text
            for span in together
            if max(alone[slice(*span)]) < SENTENCE and len(text := _joined(sentences[slice(*span)])) <= LONGEST
        }
        scores = self._scores(list(texts.values()))
        found = [span for span, text in texts.items() if scores.get(text, -1.0) >= together[span]]
        return {number for span in found for number in range(*span)}

    def warm(self) -> None:
        """Encode the exemplars and weigh them, or wait until somebody else has; blocking."""
        self._weighed()

    def _scores(self, texts: Sequence[str]) -> dict[str, float]:
        """By text, of those that have enough words to mean something."""
        read = {text: readings for text in dict.fromkeys(texts) if (readings := _readings(text))}
        different = list(dict.fromkeys(reading for readings in read.values() for reading in readings))
        if not different:
            return {}
        weights = self._weighed()
        near = _nearness(self._matcher.cosine(different, self._exemplars))
        # Row by row: a product of matrices may round a row by how many others there are.
        score = {reading: round(float((row * weights).sum()), 3) for reading, row in zip(different, near, strict=True)}
        return {text: max(score[reading] for reading in readings) for text, readings in read.items()}

    def _weighed(self) -> Scores:
        """How much each exemplar counts for or against; worked out once, whoever asks at the same time."""
        with self._weighing:
            if self._weights is None:
                self._weights = self._weigh()
            return self._weights

    def _weigh(self) -> Scores:
        pleas, honest = len(self._pleas), len(self._exemplars) - len(self._pleas)
        signs = np.repeat([1.0, -1.0], [pleas, honest])
        # Each side counts as much as the other, however many exemplars it has.
        share = np.repeat([0.5 / pleas, 0.5 / honest], [pleas, honest]) * (pleas + honest)
        matcher, known = self._matcher, self._exemplars
        near = _nearness(matcher.among(known) if isinstance(matcher, _KnowsAnchors) else matcher.cosine(known, known))
        weights: Scores = np.linalg.solve(near + RIDGE * np.diag(1.0 / share), signs)
        return weights


def exemplars(kind: str) -> tuple[str, ...]:
    """The packaged sentences of a kind, `pleas` or `honest`."""
    text = (files("reward_server.judges") / "exemplars" / f"{kind}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _nearness(cosines: Scores) -> Scores:
    near: Scores = np.exp(REACH * (cosines - 1.0))
    return near


def _readings(text: str) -> set[str]:
    """What is compared of a text: itself, and itself with its words read apart; none that has too little meaning."""
    plainly = undisguised(text)
    return {bare for each in (plainly, _INSIDE.sub(" ", unglued(plainly))) if _has_meaning(bare := _bare(each))}


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", plain(text)).split())


def _has_meaning(text: str) -> bool:
    return len(_WORD.findall(text)) >= LEAST_WORDS or len(_UNSPACED.findall(text)) >= LEAST_LETTERS


def _clauses(sentence: str) -> list[str]:
    """The sentence cut behind its seams; what is too short stays with what stands before it."""
    seams = [0, *(seam.end() for seam in _SEAM.finditer(sentence)), len(sentence)]
    cuts = [cut for start, end in pairwise(seams) for cut in range(start, end, LONGEST)]
    clauses: list[str] = []
    for start, end in pairwise([*cuts, len(sentence)]):
        piece = sentence[start:end]
        if clauses and len(_WORD.findall(piece)) < LEAST_CLAUSE:
            clauses[-1] += piece
        else:
            clauses.append(piece)
    return clauses


def _stretches(clause: str) -> list[str]:
    """Stretches of a clause that is longer than one, for what is glued to it without any sign."""
    words = clause.split()
    last = len(words) - STRETCH
    starts = [*range(0, last, STRETCH // 2), last] if last > 0 else []
    return [" ".join(words[start : start + STRETCH]) for start in starts]


def _runs(sentences: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From where to where scraps that follow each other are read as one, also with what stands behind them."""
    start = 0
    for is_scrap, run in groupby(sentences, _is_scrap):
        end = start + len(list(run))
        if is_scrap and end - start > 1:
            for first in range(start, end - 1, STRETCH):
                yield first, min(end, first + 2 * STRETCH)
            yield max(start, end - 2 * STRETCH), min(len(sentences), end + 1)
        start = end


def _joined(sentences: Iterable[str]) -> str:
    """The sentences as one, without the stops behind scraps."""
    *before, last = (sentence.strip() for sentence in sentences)
    return " ".join([*(each.rstrip(".!?\u2026") if _is_scrap(each) else each for each in before), last])


def _is_scrap(sentence: str) -> bool:
    """Whether a sentence has hardly a word; one with a figure is an item of a list, not a word of another sentence."""
    return len(_WORD.findall(sentence)) < LEAST_WORDS and not any(map(str.isdigit, sentence))


def _left(clauses: Sequence[str], scores: Mapping[str, float]) -> Iterator[str]:
    """The clauses that are no pleas; one alone is the sentence itself, which has been decided."""
    return (clause for clause in clauses if len(clauses) == 1 or scores.get(clause, -1.0) < CLAUSE)
