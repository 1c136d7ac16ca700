"""What the learned heads see of a sentence and a topic, or of a sentence and a commitment.

Both matrices have one row per topic or commitment. Columns: likenesses with the examples and the answers, shared
words, how a topic stands in the story, the lead over the best other row, and what is known of the sentence itself
(its acts, stance and length).
All values depend on the sentence, what stood before it and the case alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from personas.reading.embedder import Vectors
from personas.reading.index import NEAREST, UNSEEN_IDF, CaseIndex, Stack
from personas.wording import content_stems, stem_line, stems

Matrix = NDArray[np.float32]

ELLIPTIC_WORDS = 3
"""A sentence with no more meaningful words than this is also read after the persona's last sentence."""


@dataclass(frozen=True, slots=True)
class Heard:
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
    """Whether a sentence may need what was said before it to be understood."""
    return len(content_stems(sentence)) <= ELLIPTIC_WORDS


def _leads(columns: Matrix) -> Matrix:
    """Each value less the largest of the others in its column; shape as given."""
    if len(columns) < 2:
        return columns
    second, first = np.sort(columns, axis=0)[-2:]
    leads: Matrix = columns - np.where(columns == first, second, first)
    return leads


def _likenesses(heard: Heard, stack: Stack) -> Matrix:
    """Shape (groups, 6)."""
    near = stack.examples @ heard.alone
    best = np.sort(np.append(near, np.float32(-np.inf))[stack.places], axis=1)[:, ::-1][:, :NEAREST]
    counted = np.where(np.isfinite(best), best, np.float32(0.0)).sum(axis=1) / stack.nearest
    columns = [
        best[:, 0],
        counted,
        stack.centroids @ heard.alone,
        np.maximum.reduceat(stack.answers @ heard.alone, stack.first_answer),
        np.maximum.reduceat(stack.examples @ heard.after_line, stack.first_example),
        np.maximum.reduceat(stack.answers @ heard.after_line, stack.first_answer),
    ]
    likenesses: Matrix = np.stack(columns, axis=1).astype(np.float32)
    return likenesses


def topic_features(index: CaseIndex, heard: Heard) -> Matrix:
    """Shape (topics, features)."""
    words, line = content_stems(heard.text), stem_line(stems(heard.text))
    weight = math.fsum(index.idf.get(word, UNSEEN_IDF) for word in words) or 1.0
    rows = [
        [
            math.fsum(index.idf[word] for word in words & group.words) / weight,
            float(any(keyword in line for keyword in group.keywords)),
            max((len(gist & heard.line_words) / len(gist) for gist in group.gists), default=0.0),
            *group.standing,
        ]
        for group in index.topics
    ]
    base = np.hstack([_likenesses(heard, index.topic_stack), np.array(rows, dtype=np.float32)])
    return _assembled(base, (0, 1, 2, 3, 4, 5, 6), heard, len(words))


def commitment_features(index: CaseIndex, heard: Heard) -> Matrix:
    """Shape (commitments, features)."""
    if not index.commitments:
        return np.zeros((0, 0), dtype=np.float32)
    words = content_stems(heard.text)
    asks = float((index.topic_stack.examples @ heard.alone).max()) if index.topics else 0.0
    rows = [[len(words & group.words) / max(1, len(words)), asks] for group in index.commitments]
    base = np.hstack([_likenesses(heard, index.commitment_stack), np.array(rows, dtype=np.float32)])
    return _assembled(base, (0, 1, 2, 3, 6), heard, len(words))


def _assembled(base: Matrix, leading: tuple[int, ...], heard: Heard, words: int) -> Matrix:
    leads = _leads(base[:, leading])
    own = [len(heard.text.split()) / 20, float("?" in heard.text), float(bool(heard.line_words)), words / 8]
    own += [heard.share, float(words <= ELLIPTIC_WORDS), float(base[:, 0].max()), float(base[:, 3].max())]
    shared = np.concatenate([np.array(own, dtype=np.float32), heard.acts])
    features: Matrix = np.round(np.hstack([base, leads, np.tile(shared, (len(base), 1))]), 4).astype(np.float32)
    return features
