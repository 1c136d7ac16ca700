"""Plain features: each text is encoded once, and what is remembered changes no number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reward_server.encoders.encoder import Vectors
from reward_server.reward_models.plain_features import PlainFeatures
from tests.reward_models.letters import LetterEncoder
from tests.reward_models.talks import talk


class Listening(LetterEncoder):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().encode(texts)


def test_a_text_is_encoded_once_and_remembered() -> None:
    talks = [talk(["glad"], "hi"), talk(["sorry"], "hi"), talk(["glad"], "bye")]
    encoder = Listening()
    plain = PlainFeatures(encoder)
    found = plain.features(talks)
    assert sorted(encoder.asked) == ["bye", "glad", "hi", "sorry"]
    assert np.array_equal(plain.features(talks[::-1]), found[::-1])
    assert len(encoder.asked) == 4
    alone = [PlainFeatures(LetterEncoder()).features([each])[0] for each in talks]
    assert np.array_equal(found, alone)
    assert plain.features([]).shape == (0, 3)
