"""Counts of what a text is made of: its common words and marks, its hashed words, and numbers about an exchange.

These see what sentence vectors blur: length, questions, figures, hedging, who is addressed, and what was taken over
from the other party. Everything is fixed and hashed (no vocabulary, nothing fitted), pure, the same in every process.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from personas.text.wording import tokens

Row = NDArray[np.float32]

_COMMON = """
    i you he she they we it me your my not no don't do does can can't could couldn't should will would may might must
    sorry please help think sure want know feel people because but and or so if that this what how why when the a an is
    are be was have has there here okay yes well just really very some any most many like good bad right wrong try tell
    talk ask say need make thanks understand agree also maybe however important let's let great first next step again
    check sound sounds actually mistake correct wonder you're i'm it's that's"""
COMMON = tuple(_COMMON.split())
"""Words whose share is a feature of its own: the small words that tell style, stance and the acts of a turn."""
MARKS = ',.!?:;-()"'
BUCKETS = 1024
"""Hashed words and pairs of neighbours; two words of one bucket count alike, or against each other."""
NUMBERS = 24
"""The length of `exchange_numbers`."""
COUNTS = 11
"""So many of them, the first, are of the turn alone: its length, questions, figures; the others set it beside what came
before it."""
COSINE_TO_LATEST = 21
"""Where among them the cosine of the turn with the message it answers stands."""
RELATIONS = {"cosine": COSINE_TO_LATEST, "request taken up": 13, "reply to the point": 14}
"""Where that cosine stands, and late interaction in both directions: how near the nearest sentence of the turn is to
each sentence of the message it answers, and the other way round."""
SMOOTHING = 5
"""Words added to every length, so that a share is not made by one word."""


@dataclass(frozen=True, slots=True)
class HeardWordings:
    """The wordings that an agent's turn answers to, as sets to compare it with."""

    words: frozenset[str]
    """All words said before it."""
    latest: frozenset[str]
    """Those of the other party's last message."""
    figures: frozenset[str]
    """All numbers said before it."""


def figures_in(words: Sequence[str]) -> list[str]:
    """The words that are numbers."""
    return [word for word in words if word[0].isdigit()]


def shares(text: str) -> Row:
    """Square roots of the shares of common words and marks, steadier than shares; as long as COMMON and MARKS."""
    words = tokens(text)
    found, length = Counter(words), len(words) + SMOOTHING
    counts = [*(found[word] for word in COMMON), *(text.count(mark) for mark in MARKS)]
    return np.sqrt(np.array(counts, dtype=np.float32) / length).astype(np.float32)


def hashed(text: str, buckets: int = BUCKETS) -> Row:
    """Signed hashed words and word pairs (Weinberger et al. 2009), dampened, of unit length; shape (buckets,)."""
    words = tokens(text)
    row = np.zeros(buckets, dtype=np.float32)
    for term in [*words, *map(" ".join, pairwise(words))]:
        code = zlib.crc32(term.encode("utf-8", "replace"))
        row[code % buckets] += 1.0 if code >> 31 else -1.0
    row = np.sign(row) * np.log1p(np.abs(row))
    return (row / max(float(np.linalg.norm(row)), 1e-6)).astype(np.float32)


def exchange_numbers(segments: Sequence[str], own: Row, last: Row, before: Row, heard: HeardWordings) -> Row:
    """Numbers about an agent's turn beside what came before it, shape (NUMBERS,).

    Args:
        segments: the turn's sentences, at least one.
        own: their vectors, shape (len(segments), d).
        last: those of the other party's last message, shape (m, d), m may be 0.
        before: those of everything said before, shape (k, d), k may be 0.
        heard: the words said before.
    """
    words = [word for segment in segments for word in tokens(segment)]
    length = max(1, len(words))
    content = [word for word in words if len(word) >= 3 and not word[0].isdigit()]
    figures = figures_in(words)
    asked = sum("?" in segment for segment in segments)
    new = sum(figure not in heard.figures for figure in figures)
    numbers = [
        math.log1p(len(words)),
        math.log1p(len(segments)),
        asked / len(segments),
        math.log1p(asked),
        len(set(words)) / length,
        len(segments) / length,
        sum(word in {"i", "i'm", "i'll", "i've", "my"} for word in words) / length,
        sum(word.startswith("you") for word in words) / length,
        len(figures) / length,
        math.log1p(new),
        math.log1p(len(figures) - new),
        _share(content, heard.words),
        _share(content, heard.latest),
        *_likeness(own, last),
        *_likeness(own, before),
        _cosine(own, last),
        _cosine(own, before),
        _cosine(own, before[:1]),
    ]
    return np.array(numbers, dtype=np.float32)


def _share(words: Sequence[str], known: frozenset[str]) -> float:
    return sum(word in known for word in words) / len(words) if words else 0.0


def _likeness(own: Row, others: Row) -> tuple[float, float, float, float]:
    """Late interaction (ColBERT's MaxSim, Khattab & Zaharia 2020) in both directions, the best pair, the mean."""
    if not len(others):
        return 0.0, 0.0, 0.0, 0.0
    cosines = own @ others.T
    return float(cosines.max(0).mean()), float(cosines.max(1).mean()), float(cosines.max()), float(cosines.mean())


def _cosine(own: Row, others: Row) -> float:
    """Of the mean vectors."""
    if not len(others):
        return 0.0
    left, right = own.mean(0), others.mean(0)
    return float(left @ right / max(float(np.linalg.norm(left) * np.linalg.norm(right)), 1e-6))
