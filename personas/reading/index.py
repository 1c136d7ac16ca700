"""A case as the local reader compares it: the vectors and words of its topics and commitments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase, CompiledTopic
from personas.case.schema import Tier
from personas.reading.embedder import Embedder, Vectors
from personas.text.wording import content_stems, normal, stem_line, stems

UNSEEN_IDF = 3.0
"""The weight of a word that no topic of the case has."""
NEAREST = 3
"""The mean likeness is that with so many examples."""

Columns = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TextGroup:
    """The example texts of one topic or commitment."""

    id: str
    texts: tuple[str, ...]
    vectors: Vectors
    centroid: Vectors
    answers: Vectors
    """Of a topic what the persona says; of a commitment what it replies."""
    words: frozenset[str]
    gists: tuple[frozenset[str], ...]
    """Of a topic: the stems of each answer."""
    keywords: tuple[str, ...]
    standing: tuple[float, ...] = ()
    """Of a topic: whether it is told unasked, takes trust, belongs to the story, and how late it comes."""


class Stack:
    """The vectors of several groups in one matrix each, so that sentences are compared with all in one product.

    In fp64: a likeness is rounded afterwards, and then it is the same whatever else is in the product.
    """

    def __init__(self, groups: Sequence[TextGroup]) -> None:
        sizes: NDArray[np.intp] = np.array([len(group.vectors) for group in groups])
        ends = np.cumsum(sizes)
        self.examples: Columns = _columns([group.vectors for group in groups])
        """Of all groups, one group after the other; shape (width, examples)."""
        self.first_example: NDArray[np.intp] = ends - sizes
        self.places: NDArray[np.intp] = np.full((len(groups), sizes.max()), ends[-1])
        """Per group the columns of its examples, filled up with one behind the last; shape (groups, most examples)."""
        for row, start, end in zip(self.places, self.first_example, ends, strict=True):
            row[: end - start] = range(start, end)
        self.nearest: NDArray[np.intp] = np.minimum(sizes, NEAREST)
        """How many of a group's examples the mean of the nearest is taken over."""
        self.centroids: Columns = _columns([group.centroid[None] for group in groups])
        self.answers: Columns = _columns([group.answers for group in groups])
        self.first_answer: NDArray[np.intp] = np.cumsum([0, *(len(group.answers) for group in groups[:-1])])


def _columns(vectors: Sequence[Vectors]) -> Columns:
    return np.ascontiguousarray(np.concatenate(vectors).T, dtype=np.float64)


@dataclass(frozen=True, repr=False, eq=False)
class CaseIndex:
    """Everything of a case that sentences are compared with."""

    topics: tuple[TextGroup, ...]
    commitments: tuple[TextGroup, ...]
    idf: dict[str, float]
    """Per stem how much it tells one topic from another."""

    @cached_property
    def topics_by_word(self) -> dict[str, tuple[int, ...]]:
        """Per stem the places of the topics that have it."""
        return _places_by_word(self.topics)

    @cached_property
    def commitments_by_word(self) -> dict[str, tuple[int, ...]]:
        """Per stem the places of the commitments that have it."""
        return _places_by_word(self.commitments)

    @cached_property
    def topics_by_example(self) -> dict[str, tuple[int, ...]]:
        """Per example, as `normal` has it, the places of the topics that have it."""
        return _places_by_example(self.topics)

    @cached_property
    def commitments_by_example(self) -> dict[str, tuple[int, ...]]:
        """Per example, as `normal` has it, the places of the commitments that have it."""
        return _places_by_example(self.commitments)

    @cached_property
    def topic_stack(self) -> Stack:
        """Of a case with topics."""
        return Stack(self.topics)

    @cached_property
    def commitment_stack(self) -> Stack:
        """Of a case with commitments."""
        return Stack(self.commitments)


def _places_by_word(groups: Sequence[TextGroup]) -> dict[str, tuple[int, ...]]:
    places_of: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for word in group.words:
            places_of.setdefault(word, []).append(place)
    return {word: tuple(places) for word, places in places_of.items()}


def _places_by_example(groups: Sequence[TextGroup]) -> dict[str, tuple[int, ...]]:
    places_of: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for example in dict.fromkeys(map(normal, group.texts)):
            places_of.setdefault(example, []).append(place)
    return {example: tuple(places) for example, places in places_of.items()}


def index_of(case: CompiledCase, embedder: Embedder, background: Sequence[CompiledTopic] = ()) -> CaseIndex:
    """Embeds the authored texts of a case, in one call; blocking.

    Args:
        case: whose texts.
        embedder: embeds them.
        background: what of the persona's background stands among the topics; with any, there are no commitments.
    """
    held = (*case.topics, *background)
    parts = [(t.id, t.examples or t.says, t.answers, t.keywords) for t in held]
    promises = [] if background else [(c.id, c.examples, c.reply, ()) for c in case.commitments]
    wanted = list(dict.fromkeys(text for _, asks, answers, _ in (*parts, *promises) for text in (*asks, *answers)))
    vectors = dict(zip(wanted, embedder.embed_authored(wanted), strict=True))
    topics = tuple(
        replace(_group(*part, vectors), standing=_standing(topic, number / len(parts)))
        for number, (topic, part) in enumerate(zip(held, parts, strict=True))
    )
    commitments = tuple(_group(*part, vectors) for part in promises)
    frequency = Counter(word for topic in topics for word in topic.words)
    idf = {word: math.log((len(topics) + 1) / count) for word, count in frequency.items()}
    return CaseIndex(topics, commitments, idf)


def _standing(topic: CompiledTopic, place: float) -> tuple[float, ...]:
    told = topic.tier is Tier.VOLUNTEERED
    return float(told), float(topic.tier is Tier.RAPPORT), float(topic.in_story), place


def _group(
    name: str,
    texts: Sequence[str],
    answers: Sequence[str],
    keywords: Sequence[str],
    vectors: Mapping[str, Vectors],
) -> TextGroup:
    width = len(next(iter(vectors.values())))

    def rows(lines: Sequence[str]) -> Vectors:
        return np.stack([vectors[line] for line in lines]) if lines else np.zeros((1, width), dtype=np.float32)

    matrix = rows(texts)
    mean = matrix.mean(axis=0)
    return TextGroup(
        id=name,
        texts=tuple(texts),
        vectors=matrix,
        centroid=mean / max(float(np.linalg.norm(mean)), 1e-6),
        answers=rows(answers),
        words=frozenset().union(*(content_stems(line) for line in (*texts, *answers, *keywords))),
        gists=tuple(gist for gist in map(content_stems, answers) if gist),
        keywords=tuple(stem_line(stems(keyword)) for keyword in keywords),
    )
