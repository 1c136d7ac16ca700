"""Who is asked about two conversations of equal reward, and what about."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reward_server.errors import JudgeFailed
from reward_server.judges.pairwise import PairwisePreference
from reward_server.scoring.config import read_config
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.tie_breaker import TieBreaker
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion, Family
from tests.scoring.builders import ASK_PLACE, ASK_START, COLLECTION, SCENARIO, a_library, a_transcript


class Pairs:
    """A judge of pairs that keeps what it was asked, and answers or fails."""

    def __init__(self, failure: JudgeFailed | None = None) -> None:
        self.failure = failure
        self.criteria: Sequence[Criterion] = ()
        self.asked: list[tuple[str, Transcript, Transcript, str]] = []

    async def compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        self.criteria = criteria
        self.asked.append((scenario.name, a, b, lab_id))
        if self.failure:
            raise self.failure
        return PairwisePreference("b", consistent=True)


ONE, OTHER = a_transcript(ASK_PLACE), a_transcript(ASK_START)


def request(transcript: Transcript, **weights: float) -> ScoreRequest:
    config = read_config({"quality_weights": weights} if weights else None)
    return ScoreRequest(COLLECTION, SCENARIO, transcript, config, "acme")


async def test_the_judge_of_pairs_decides_and_the_lab_of_the_request_pays() -> None:
    pairs = Pairs()
    assert await TieBreaker(pairs, a_library().vault, Metrics()).winner(request(ONE), request(OTHER)) == "b"
    assert pairs.asked == [(f"{COLLECTION}/{SCENARIO}", ONE, OTHER, "acme")]


async def test_it_judges_by_what_the_request_weighs() -> None:
    pairs = Pairs()
    await TieBreaker(pairs, a_library().vault, Metrics()).winner(request(ONE, discovery=1.0), request(OTHER))
    assert {criterion.family for criterion in pairs.criteria} == {Family.DISCOVERY}


async def test_a_failure_is_counted_and_stays_one() -> None:
    metrics = Metrics()
    breaker = TieBreaker(Pairs(JudgeFailed(kind="refused")), a_library().vault, metrics)
    with pytest.raises(JudgeFailed):
        await breaker.winner(request(ONE), request(OTHER))
    assert b'labs_judge_failures_total{kind="refused"} 1.0' in metrics.render()
