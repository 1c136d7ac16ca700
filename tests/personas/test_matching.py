"""Which topic a question is about, given similarities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from personas.anchors import AskGrid, Span
from personas.manners import SMALL_TALK
from personas.matching import match, topic_scores
from tests.personas.cast import compiled

CASE = compiled()


def row(cosines: Mapping[str, float], small_talk: float = 0.0) -> np.ndarray:
    """A similarity row in which all example questions of a topic have one cosine."""
    values = np.zeros(len(CASE.anchors))
    for topic in CASE.topics:
        values[topic.span.start : topic.span.stop] = cosines.get(topic.id, 0.0)
    values[CASE.small_talk_span.start] = small_talk
    return values


def found(cosines: Mapping[str, float], question: str = "What happened?", small_talk: float = 0.0) -> str | None:
    result = match(CASE, question, row(cosines, small_talk))
    return result.topic_id if result else None


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        ({"noise": 0.9}, "noise"),
        ({"noise": 0.46}, "noise"),
        ({"noise": 0.44}, None),
        ({"noise": 0.47, "tablets": 0.46}, None),
        ({"noise": 0.60, "tablets": 0.599}, "noise"),
    ],
)
def test_a_clear_winner_counts_from_the_low_threshold_and_a_narrow_one_from_the_high(
    cosines: dict[str, float], expected: str | None
) -> None:
    assert found(cosines) == expected


def test_a_keyword_tips_the_scales_but_is_not_enough_alone() -> None:
    assert found({"noise": 0.47, "tablets": 0.46}, "What about those tablets?") == "tablets"
    assert found({}, "What about those tablets?") is None


def test_a_question_closer_to_small_talk_is_about_nothing() -> None:
    assert found({"noise": 0.5}, small_talk=0.5) == "noise"
    assert found({"noise": 0.5}, small_talk=0.6) is None
    assert len(SMALL_TALK) >= 20


def test_one_odd_example_weighs_less_than_three_close_ones() -> None:
    values = np.zeros(len(CASE.anchors))
    noise, tablets = CASE.by_id["noise"].span, CASE.by_id["tablets"].span
    values[noise.start] = 0.60
    values[tablets.start : tablets.start + 3] = 0.58
    result = match(CASE, "What happened?", values)
    assert result is not None
    assert result.topic_id == "tablets"


def test_the_weights_of_few_examples_still_sum_to_one() -> None:
    grid = AskGrid([Span(0, 1), Span(1, 3), Span(3, 3), Span(3, 8)])
    assert grid.scores(np.ones(8)).tolist() == pytest.approx([1.0, 1.0, 0.0, 1.0])


def test_topics_without_examples_score_nothing() -> None:
    scores = topic_scores(CASE, "What happened?", row({"noise": 0.5}))
    assert scores[[t.id for t in CASE.topics].index("swelling")] == 0.0
