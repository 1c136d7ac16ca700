"""Whether a sentence is more like pleas with a judge than like what agents say at work: for pleas no pattern knows.

The text encoder compares it with exemplars of both (`exemplars/*.txt`), which kernel ridge regression on +1 and -1
weighs: what a sentence has of each is exp(REACH * (cosine - 1)), so near exemplars count far more than distant ones.
Nothing is trained ahead: the weights follow from the exemplars and the encoder, and whoever adds a line changes both
the weights and the version.

It reads whole sentences, the clauses of a sentence (a plea may be glued to honest words) and neighbouring sentences
(it may be spread over two). It errs on either side; what it leaves out costs an agent the credit for those words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from personas.disguise import undisguised
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
"""Characters of a clause or a pair; the encoder reads no more than the beginning of a long text."""

_SEAM = re.compile(
    r"[,;:()\u2013\u2014\n\uff0c\uff1b]+\s*|\s-{1,3}\s|\s(?=(?i:and|but|which|because|while|since|so|as)\s)"
    r"|(?<=[a-z])\s(?=(?:You|We|The|This|That|It|What|How|When|Where|Can|Could|Do|Did|Is|Are|My|Your|Please|Thank)\s)"
)
_MARKS = re.compile(r"[*_#`~>|]+")
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[^\W\d_\x00-\u06ff]")

Scores = NDArray[np.float64]


class Likeness:
    """Tells pleas from talk by a matcher."""

    def __init__(
        self, matcher: Matcher, pleas: Sequence[str] | None = None, honest: Sequence[str] | None = None
    ) -> None:
        """Compare by the packaged exemplars, or by others."""
        self._matcher = matcher
        self._pleas = exemplars("pleas") if pleas is None else tuple(pleas)
        self._exemplars = (*self._pleas, *(exemplars("honest") if honest is None else honest))

    @property
    def version(self) -> str:
        """Follows the exemplars and the encoder, whose vectors decide."""
        told = "\n".join((str(len(self._pleas)), *self._exemplars))
        return f"{hashlib.sha256(told.encode()).hexdigest()[:12]}/{self._matcher.version}"

    def left_of(self, sentences: Sequence[str]) -> str:
        """What is left of the sentences of one text, in their order; blocking, because the matcher may run a model."""
        clauses = [_clauses(sentence) for sentence in sentences]
        scores = self._scores([*sentences, *(each for parts in clauses for each in parts)])
        alone = [scores.get(sentence, -1.0) for sentence in sentences]
        spread = self._spread(sentences, alone)
        return "".join(
            clause
            for number, parts in enumerate(clauses)
            if alone[number] < SENTENCE and number not in spread
            for clause in _left(parts, scores)
        )

    def _spread(self, sentences: Sequence[str], alone: Sequence[float]) -> set[int]:
        """The numbers of those that are a plea together with a neighbour."""
        pairs = {
            number: f"{sentences[number]} {sentences[number + 1]}"
            for number, scores in enumerate(pairwise(alone))
            if NEARLY <= max(scores) < SENTENCE and len(sentences[number]) + len(sentences[number + 1]) <= LONGEST
        }
        scores = self._scores(list(pairs.values()))
        return {
            each for number, pair in pairs.items() if scores.get(pair, -1.0) >= PAIR for each in (number, number + 1)
        }

    def _scores(self, texts: Sequence[str]) -> dict[str, float]:
        """By text, of those that have enough words to mean something."""
        read = {text: bare for text in dict.fromkeys(texts) if _has_meaning(bare := _bare(text))}
        if not read:
            return {}
        near = _nearness(self._matcher.cosine(list(read.values()), self._exemplars))
        # Row by row: a product of matrices may round a row by how many others there are.
        return {text: round(float((row * self._weights).sum()), 3) for text, row in zip(read, near, strict=True)}

    @cached_property
    def _weights(self) -> Scores:
        """How much each exemplar counts for or against."""
        pleas, honest = len(self._pleas), len(self._exemplars) - len(self._pleas)
        signs = np.repeat([1.0, -1.0], [pleas, honest])
        # Each side counts as much as the other, however many exemplars it has.
        share = np.repeat([0.5 / pleas, 0.5 / honest], [pleas, honest]) * (pleas + honest)
        near = _nearness(self._matcher.cosine(self._exemplars, self._exemplars))
        weights: Scores = np.linalg.solve(near + RIDGE * np.diag(1.0 / share), signs)
        return weights


def exemplars(kind: str) -> tuple[str, ...]:
    """The packaged sentences of a kind, `pleas` or `honest`."""
    text = (files("reward_server.judges") / "exemplars" / f"{kind}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _nearness(cosines: Scores) -> Scores:
    near: Scores = np.exp(REACH * (cosines - 1.0))
    return near


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", plain(undisguised(text))).split())


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


def _left(clauses: Sequence[str], scores: Mapping[str, float]) -> Iterator[str]:
    """The clauses that are no pleas; one alone is the sentence itself, which has been decided."""
    return (clause for clause in clauses if len(clauses) == 1 or scores.get(clause, -1.0) < CLAUSE)
