"""What was said in one message and what in two are different conversations, however their texts could be glued."""

from __future__ import annotations

import numpy as np
import pytest

from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.features import ConversationFeaturiser
from tests.reward_models.test_features import GOOD, KIND, NEXT, OPENING, RUDE, Dice, talk


@pytest.mark.parametrize("glue", ["", " ", "\n", "||", "\0", "assistant: "])
@pytest.mark.parametrize("first", ["scenario", "opening", "line"])
def test_no_two_texts_share_a_place_in_memory(first: str, glue: str) -> None:
    """One featuriser for both, as in a server: what it remembers of one must not answer for the other."""
    whole, parts = {
        "scenario": (talk(OPENING, KIND, scenario=f"Repairs{glue}{NEXT}"), talk(f"{NEXT}{glue}{OPENING}", KIND)),
        "opening": (talk(f"{OPENING}{glue}{KIND}", GOOD), talk(OPENING, f"{KIND}{glue}{GOOD}")),
        "line": (talk(OPENING, f"{KIND}{glue}{NEXT}{glue}{GOOD}"), talk(OPENING, KIND, NEXT, GOOD)),
    }[first]
    shared = ConversationFeaturiser(Dice())
    for conversation in (whole, parts):
        alone = ConversationFeaturiser(Dice()).features([conversation])
        np.testing.assert_array_equal(shared.features([conversation]), alone)
    assert not np.array_equal(shared.features([whole]), shared.features([parts]))


def test_a_rude_and_a_polite_reply_of_one_length_are_told_apart() -> None:
    rude = RUDE.ljust(len(KIND), "!")
    polite, impolite = talk(OPENING, KIND, NEXT, GOOD), talk(OPENING, rude, NEXT, GOOD)
    assert lengths(polite) == lengths(impolite)
    features = ConversationFeaturiser(Dice()).features([polite, impolite])
    assert np.abs(features[0] - features[1]).max() > 0.01


def lengths(conversation: Conversation) -> list[int]:
    return [len(said.text) for said in conversation.turns]
