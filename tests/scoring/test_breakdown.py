"""The score breakdown holds strength and turns, and nothing of the rubric."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reward_server.scoring.breakdown import breakdown
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Moments, Scored, or_raise
from tests.scoring.builders import COLLECTION, CRITERIA, GOOD, SCENARIO, TELL_PLACE, a_scorer, a_transcript


def a_score(score: float, moments: Moments) -> Scored:
    return Scored(0.5, {"D1_Discovery": score}, (), (), (), (), 1.0, {"D1_Discovery": moments})


@pytest.mark.parametrize(
    ("score", "moments", "text"),
    [
        (1.0, Moments((1, 2, 4)), "Very strong; gained in turns 1, 2, 4."),
        (0.7, Moments((3,), (5,)), "Strong; gained in turn 3, lost in turn 5."),
        (0.4, Moments(), "Mixed."),
        (0.2, Moments((), (1, 9)), "Weak; lost in turns 1, 9."),
        (0.0, Moments(), "Very weak."),
    ],
)
def test_texts(score: float, moments: Moments, text: str) -> None:
    assert breakdown(a_score(score, moments)) == {"D1_Discovery": text}


async def test_a_breakdown_of_a_real_score_is_scrubbed() -> None:
    with ThreadPoolExecutor(1) as threads:
        (outcome,) = await a_scorer(threads).score([ScoreRequest(COLLECTION, SCENARIO, a_transcript(*GOOD))])
    texts = breakdown(or_raise(outcome))
    assert texts == {
        "D1_Discovery": "Very strong; gained in turns 1, 2, 3.",
        "D2_Resolution": "Very strong; gained in turn 4.",
        "D3_Manner": "Very strong; gained in turns 1, 4.",
    }
    whole = " ".join(texts.values())
    assert not any(criterion["id"] in whole for criterion in CRITERIA)
    assert TELL_PLACE not in whole
