"""Words that mean nothing earn nothing: neither many different ones, nor the right ones in no order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer, ScoreRequest
from tests.scoring.builders import (
    ASK_PLACE,
    ASK_START,
    COLLECTION,
    KIND,
    SCENARIO,
    TELL_PLACE,
    TELL_START,
    Said,
    a_scorer,
    a_transcript,
)

ELEVEN_WORDS = "Lorem quartz bivouac ampersand glyph zephyr nimbus octave pylon tundra vortex."
SHUFFLED = " ".join(sorted(f"{KIND} {ASK_PLACE} {ASK_START}".replace("?", "").split(), key=str.casefold))
WEAK: tuple[Said, ...] = (KIND, "Hello, my roof is leaking.", "Let me have a look.", "Fine.")
CORRECT: tuple[Said, ...] = (f"{KIND} {ASK_PLACE}", TELL_PLACE, ASK_START, TELL_START)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with ThreadPoolExecutor(1) as threads:
        yield a_scorer(threads)


async def reward(scorer: Scorer, said: tuple[Said, ...]) -> float:
    (outcome,) = await scorer.score([ScoreRequest(COLLECTION, SCENARIO, a_transcript(*said))])
    return or_raise(outcome).reward


@pytest.mark.parametrize("words", [ELEVEN_WORDS, SHUFFLED, "a b c d e f g h i j k"])
async def test_gibberish_earns_no_more_than_an_honest_weak_answer(scorer: Scorer, words: str) -> None:
    gibberish = await reward(scorer, (words, "Sorry?", words, "I do not follow."))
    assert gibberish <= await reward(scorer, WEAK) < await reward(scorer, CORRECT)
