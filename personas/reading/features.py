"""What the learned heads see of a sentence and a topic, or of a sentence and a commitment.

Both matrices have one row per topic or commitment. Columns: likenesses with the examples and the answers, shared
words, the lead over the best other row, and what is known of the sentence itself (its acts, stance and length).
All values depend on the sentence, what stood before it and the case alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from personas.reading.embedder import Vectors
from personas.reading.index import UNSEEN_IDF, CaseIndex, Group
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


def _nearest(vectors: Vectors, vector: Vectors) -> Matrix:
    found: Matrix = np.sort(vectors @ vector)[::-1]
    return found


def _leads(column: Matrix) -> Matrix:
    """Each value less the largest of the others."""
    if len(column) < 2:
        return column
    first, second = np.sort(column)[::-1][:2]
    lead: Matrix = column - np.where(column == first, second, first)
    return lead


def _likenesses(heard: Heard, group: Group) -> list[float]:
    near = _nearest(group.vectors, heard.alone)
    return [
        float(near[0]),
        float(near[:3].mean()),
        float(group.centroid @ heard.alone),
        float((group.answers @ heard.alone).max()),
        float((group.vectors @ heard.after_line).max()),
        float((group.answers @ heard.after_line).max()),
    ]


def topic_features(index: CaseIndex, heard: Heard) -> Matrix:
    """Shape (topics, features)."""
    words, line = content_stems(heard.text), stem_line(stems(heard.text))
    weight = sum(index.idf.get(word, UNSEEN_IDF) for word in words) or 1.0
    rows = [
        [
            *_likenesses(heard, group),
            sum(index.idf[word] for word in words & group.words) / weight,
            float(any(keyword in line for keyword in group.keywords)),
            max((len(gist & heard.line_words) / len(gist) for gist in group.gists), default=0.0),
        ]
        for group in index.topics
    ]
    return _assembled(np.array(rows, dtype=np.float32), (0, 1, 2, 3, 4, 5, 6), heard, len(words))


def commitment_features(index: CaseIndex, heard: Heard) -> Matrix:
    """Shape (commitments, features)."""
    words = content_stems(heard.text)
    asks = max((float(_nearest(group.vectors, heard.alone)[0]) for group in index.topics), default=0.0)
    rows = [
        [*_likenesses(heard, group), len(words & group.words) / max(1, len(words)), asks] for group in index.commitments
    ]
    return _assembled(np.array(rows, dtype=np.float32), (0, 1, 2, 3, 6), heard, len(words))


def _assembled(base: Matrix, leading: tuple[int, ...], heard: Heard, words: int) -> Matrix:
    leads = np.stack([_leads(base[:, column]) for column in leading], axis=1)
    own = [len(heard.text.split()) / 20, float("?" in heard.text), float(bool(heard.line_words)), words / 8]
    own += [heard.share, float(words <= ELLIPTIC_WORDS), float(base[:, 0].max()), float(base[:, 3].max())]
    shared = np.concatenate([np.array(own, dtype=np.float32), heard.acts])
    features: Matrix = np.round(np.hstack([base, leads, np.tile(shared, (len(base), 1))]), 4).astype(np.float32)
    return features
