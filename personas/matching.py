"""Decides what one question is about: the best-matching topic, or none.

The score of a topic is its closest example question by meaning plus a little for its keywords. A clear
winner counts from `T_LOW` on, a narrow one only from `T_HIGH` on; below, the question is about nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from personas.compiled import CompiledCase
from personas.matcher import Matcher
from personas.wording import stem_line, stems

T_LOW = 0.45
T_HIGH = 0.55
MARGIN = 0.03
KEYWORD_BONUS = 0.10


class Similarity:
    """Cosines of conversation texts with the anchors of a case, computed in one call of the matcher."""

    def __init__(self, case: CompiledCase, matcher: Matcher, texts: Iterable[str]) -> None:
        wanted = tuple(dict.fromkeys(texts))
        self._row = {text: i for i, text in enumerate(wanted)}
        shape = (len(wanted), len(case.anchors))
        self._matrix: NDArray[np.float64] = (
            matcher.cosine(wanted, case.anchors) if wanted and case.anchors else np.zeros(shape)
        )

    def row(self, text: str) -> NDArray[np.float64]:
        """The cosines of one text with every anchor."""
        row: NDArray[np.float64] = self._matrix[self._row[text]]
        return row


@dataclass(frozen=True, slots=True)
class Match:
    """The topic a question is about."""

    topic_id: str
    score: float


def topic_scores(case: CompiledCase, question: str, row: NDArray[np.float64]) -> list[float]:
    """One score per topic of the case; topics without example questions score 0."""
    line = stem_line(stems(question))
    scores: list[float] = []
    for topic in case.topics:
        if topic.span.start == topic.span.stop:
            scores.append(0.0)
            continue
        score = float(row[topic.span.start : topic.span.stop].max())
        hits = (w for k, w in zip(topic.keywords, topic.keyword_weight, strict=True) if k in line)
        scores.append(score + KEYWORD_BONUS * min(1.0, max(hits, default=0.0)))
    return scores


def match(case: CompiledCase, question: str, row: NDArray[np.float64]) -> Match | None:
    """The one topic a question is about, if there is a clear one."""
    scores = topic_scores(case, question, row)
    if not scores:
        return None
    order: Sequence[int] = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    best = scores[order[0]]
    runner_up = scores[order[1]] if len(order) > 1 else 0.0
    if best >= T_HIGH or (best >= T_LOW and best - runner_up >= MARGIN):
        return Match(case.topics[order[0]].id, round(best, 3))
    return None
