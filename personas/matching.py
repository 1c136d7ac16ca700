"""Decides what one question is about: the best-matching topic, or none.

The score of a topic is how close its example questions are in meaning, plus a little for its keywords. A clear
winner counts from `T_LOW` on, a narrow one only from `T_HIGH` on. A question that is closer to small talk than to
any topic is about nothing here. The numbers weigh the collections' held-out probes against questions that people
asked in real conversations of other domains, which open far more than authored foreign questions do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from personas.compiled import CompiledCase
from personas.matcher import Matcher
from personas.wording import stem_line, stems

T_LOW = 0.45
T_HIGH = 0.50
MARGIN = 0.02
KEYWORD_BONUS = 0.10
SMALL_TALK_MARGIN = 0.05


class Similarity:
    """Cosines of conversation texts with the anchors of a case, computed in one call of the matcher."""

    def __init__(self, case: CompiledCase, matcher: Matcher, texts: Iterable[str]) -> None:
        wanted = tuple(dict.fromkeys(texts))
        self._row = {text: i for i, text in enumerate(wanted)}
        self._matrix: NDArray[np.float64] = matcher.cosine(wanted, case.anchors) if wanted else np.zeros((0, 0))

    def __contains__(self, text: str) -> bool:
        return text in self._row

    def row(self, text: str) -> NDArray[np.float64]:
        """The cosines of one text with every anchor."""
        row: NDArray[np.float64] = self._matrix[self._row[text]]
        return row


@dataclass(frozen=True, slots=True)
class Match:
    """The topic a question is about."""

    topic_id: str
    score: float


def topic_scores(case: CompiledCase, question: str, row: NDArray[np.float64]) -> NDArray[np.float64]:
    """One score per topic of the case."""
    line = stem_line(stems(question))
    bonus = np.zeros(len(case.topics))
    for i, topic in enumerate(case.topics):
        for keyword, weight in zip(topic.keywords, topic.keyword_weight, strict=True):
            if keyword in line and weight > bonus[i]:
                bonus[i] = weight
    # Rounded, so that a comparison with a threshold does not hang on the last bit of a sum.
    return np.round(case.ask_grid.scores(row) + KEYWORD_BONUS * bonus, 4)


def match(case: CompiledCase, question: str, row: NDArray[np.float64]) -> Match | None:
    """The one topic a question is about, if there is a clear one."""
    scores = topic_scores(case, question, row)
    first, second = (int(i) for i in np.argsort(-scores, kind="stable")[:2])
    best, runner_up = float(scores[first]), float(scores[second])
    clear = best >= T_HIGH or (best >= T_LOW and best - runner_up >= MARGIN)
    small_talk = case.small_talk_span
    if not clear or row[small_talk.start : small_talk.stop].max() > best + SMALL_TALK_MARGIN:
        return None
    return Match(case.topics[first].id, round(best, 3))
