"""Features that the learned heads see of a sentence and a topic, or of a sentence and a commitment.

Both matrices have one row per sentence and topic or commitment. Columns: likenesses with the examples and the
answers, shared words, how a topic stands in the story, the lead over the best other row, and what is known of the
sentence itself (its acts, stance and length).
All values depend on the sentence, what stood before it and the case alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from personas.reading.embedder import Vectors
from personas.reading.index import NEAREST, UNSEEN_IDF, CaseIndex, Stack
from personas.text.wording import content_stems, stem_line, stems

Matrix = NDArray[np.float32]
Wide = NDArray[np.float64]

ELLIPTIC_WORDS = 3
"""A sentence with no more meaningful words than this is also read after the persona's last sentence."""


@dataclass(frozen=True, slots=True)
class EncodedSentence:
    """A sentence with its vectors: alone, and after the persona's last sentence where it is short enough to need it.

    Or a clause of a sentence, with the acts of the sentence.
    """

    text: str
    alone: Vectors
    after_line: Vectors
    line_words: frozenset[str]
    """Stems of the persona's last line; empty where there is none."""
    acts: Matrix
    """Probabilities of the acts and stances, as the heads give them."""
    share: float = 1.0
    """Of a clause: how much of its sentence it is."""


def is_elliptic(sentence: str) -> bool:
    """True if a sentence may need what was said before it to be understood."""
    return len(content_stems(sentence)) <= ELLIPTIC_WORDS


def _leads(columns: Matrix) -> Matrix:
    """Each value less the largest of the others of its sentence; shape (sentences, groups, columns), as given."""
    if columns.shape[1] < 2:
        return columns
    ordered = np.sort(columns, axis=1)
    second, first = ordered[:, -2:-1], ordered[:, -1:]
    leads: Matrix = columns - np.where(columns == first, second, first)
    return leads


def _likenesses(alone: Wide, after: Wide, stack: Stack) -> Matrix:
    """Shape (sentences, groups, 6)."""
    near = alone @ stack.examples
    padded = np.concatenate([near, np.full((len(near), 1), -np.inf)], axis=1)
    best = np.sort(padded[:, stack.places], axis=2)[:, :, ::-1][:, :, :NEAREST]
    counted = np.where(np.isfinite(best), best, 0.0).sum(axis=2) / stack.nearest
    columns = [
        best[:, :, 0],
        counted,
        alone @ stack.centroids,
        np.maximum.reduceat(alone @ stack.answers, stack.first_answer, axis=1),
        np.maximum.reduceat(after @ stack.examples, stack.first_example, axis=1),
        np.maximum.reduceat(after @ stack.answers, stack.first_answer, axis=1),
    ]
    likenesses: Matrix = np.stack(columns, axis=2).astype(np.float32)
    return likenesses


def _pairs(heard: Sequence[EncodedSentence]) -> tuple[Wide, Wide]:
    """The vectors of sentences, alone and after the line, shape (sentences, width) each."""
    return np.array([h.alone for h in heard], np.float64), np.array([h.after_line for h in heard], np.float64)


def topic_features(index: CaseIndex, heard: Sequence[EncodedSentence]) -> Matrix:
    """Shape (sentences * topics, features), sentence by sentence."""
    words = [content_stems(h.text) for h in heard]
    standing = [group.standing for group in index.topics]
    told = {line: _told_in(index, line) for line in {h.line_words for h in heard}}
    rows = [
        [
            [shared, keyword, gist, *stands]
            for shared, keyword, gist, stands in zip(
                _shared(index, own), _keywords(index, h.text), told[h.line_words], standing, strict=True
            )
        ]
        for h, own in zip(heard, words, strict=True)
    ]
    base = np.concatenate([_likenesses(*_pairs(heard), index.topic_stack), np.array(rows, dtype=np.float32)], axis=2)
    return _assembled(base, (0, 1, 2, 3, 4, 5, 6), heard, list(map(len, words)))


def _shared(index: CaseIndex, words: frozenset[str]) -> list[float]:
    """Per topic how much of what the words weigh it has."""
    shares: list[list[float]] = [[] for _ in index.topics]
    for word in words:
        for place in index.topics_by_word.get(word, ()):
            shares[place].append(index.idf[word])
    weight = math.fsum(index.idf.get(word, UNSEEN_IDF) for word in words) or 1.0
    return [math.fsum(of_topic) / weight for of_topic in shares]


def _keywords(index: CaseIndex, text: str) -> list[float]:
    """Per topic whether the text has one of its keywords."""
    line = stem_line(stems(text))
    return [float(any(keyword in line for keyword in group.keywords)) for group in index.topics]


def _told_in(index: CaseIndex, line: frozenset[str]) -> list[float]:
    """Per topic how much of an answer the persona's last line has."""
    return [max((len(gist & line) / len(gist) for gist in group.gists), default=0.0) for group in index.topics]


def commitment_features(index: CaseIndex, heard: Sequence[EncodedSentence]) -> Matrix:
    """Shape (sentences * commitments, features), sentence by sentence."""
    if not index.commitments:
        return np.zeros((0, 0), dtype=np.float32)
    words = [content_stems(h.text) for h in heard]
    alone, after = _pairs(heard)
    asks = (alone @ index.topic_stack.examples).max(axis=1) if index.topics else np.zeros(len(heard))
    rows = np.empty((len(heard), len(index.commitments), 2), dtype=np.float32)
    for row, own, near in zip(rows, words, asks, strict=True):
        places = (place for word in own for place in index.commitments_by_word.get(word, ()))
        row[:, 0] = np.bincount(np.fromiter(places, np.intp), minlength=len(row)) / max(1, len(own))
        row[:, 1] = near
    base = np.concatenate([_likenesses(alone, after, index.commitment_stack), rows], axis=2)
    return _assembled(base, (0, 1, 2, 3, 6), heard, list(map(len, words)))


def _assembled(
    base: Matrix, leading: tuple[int, ...], heard: Sequence[EncodedSentence], words: Sequence[int]
) -> Matrix:
    own = [
        [
            len(h.text.split()) / 20,
            float("?" in h.text),
            float(bool(h.line_words)),
            count / 8,
            h.share,
            float(count <= ELLIPTIC_WORDS),
        ]
        for h, count in zip(heard, words, strict=True)
    ]
    best = base[:, :, [0, 3]].max(axis=1)
    shared = np.concatenate([np.array(own, dtype=np.float32), best, np.array([h.acts for h in heard])], axis=1)
    spread = np.broadcast_to(shared[:, None], (*base.shape[:2], shared.shape[1]))
    features: Matrix = np.round(np.concatenate([base, _leads(base[:, :, leading]), spread], axis=2), 4)
    return features.reshape(-1, features.shape[2])
