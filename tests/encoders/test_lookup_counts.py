"""The matcher tells of hits and misses of its cache, for the metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reward_server.encoders.encoder import EncoderMatcher
from reward_server.telemetry.metrics import Metrics


class OneWay:
    """Every text is the same vector."""

    version = "one"
    width = 1

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 1), dtype=np.float32)


def test_hits_and_misses_are_told() -> None:
    seen: list[tuple[int, int]] = []
    matcher = EncoderMatcher(OneWay(), looked_up=lambda hits, misses: seen.append((hits, misses)))
    matcher.cosine(["a", "b"], ["x"])
    matcher.cosine(["b", "c", "c"], ["x"])
    assert seen == [(0, 2), (1, 1)]


def test_they_are_on_the_metrics_page() -> None:
    metrics = Metrics()
    matcher = EncoderMatcher(OneWay(), looked_up=metrics.encoder_looked_up)
    matcher.cosine(["a", "b"], ["x"])
    matcher.cosine(["a"], ["x"])
    page = metrics.render().decode()
    assert 'labs_encoder_texts_total{cache="hit"} 1.0' in page
    assert 'labs_encoder_texts_total{cache="miss"} 2.0' in page
