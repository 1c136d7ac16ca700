"""Learned judges have their texts encoded with everybody's before they estimate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from reward_server.encoders.encoder import Vectors
from reward_server.encoders.micro_batcher import MicroBatcher
from reward_server.errors import JudgeFailed, Overloaded
from reward_server.judges.base import Case
from reward_server.judges.estimate import Estimate
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.scoring.estimates import prepared

TALKS = [
    Conversation(
        (
            ConversationMessage("persona", "My knee hurts."),
            ConversationMessage("agent", f"How long has it hurt? Since {day}?"),
        ),
        "A clinic.",
    )
    for day in ("Monday", "Tuesday", "Friday")
]


class LengthEncoder:
    """A text's direction is its length; remembers what it was asked."""

    version = "length/1"
    width = 2

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.seen += texts
        return np.array([[np.cos(len(t)), np.sin(len(t))] for t in texts], dtype=np.float32).reshape(-1, 2)


def test_what_was_prepared_is_not_encoded_again_and_changes_no_feature() -> None:
    encoder, batcher = LengthEncoder(), MicroBatcher(workers=1)
    featuriser = ConversationFeaturiser(batcher.over(encoder))
    asyncio.run(featuriser.prepare(TALKS))
    asked = list(encoder.seen)
    found = featuriser.features(TALKS)
    batcher.close()
    assert asked
    assert encoder.seen == asked
    assert len(set(asked)) == len(asked)
    assert np.array_equal(found, ConversationFeaturiser(LengthEncoder()).features(TALKS))


def test_nothing_is_prepared_where_the_encoder_has_no_threads_of_its_own() -> None:
    encoder = LengthEncoder()
    asyncio.run(ConversationFeaturiser(encoder).prepare(TALKS))
    assert encoder.seen == []


class Preparing:
    """A judge whose preparation fails."""

    name = version = "preparing"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def prepare(self, cases: Sequence[Case]) -> None:
        raise self._error

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        return []


def test_a_full_queue_refuses_the_call_and_a_failing_judge_is_left_to_its_estimate() -> None:
    asyncio.run(prepared(Preparing(JudgeFailed()), []))
    with pytest.raises(Overloaded):
        asyncio.run(prepared(Preparing(Overloaded()), []))
