"""Counterparts: nothing but what people preferred, and what a request asks for, can be learned from them."""

from __future__ import annotations

import numpy as np
import pytest

from reward_server.fitting.reward_model.style_choice import Chooser, ValidationScores
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.counterparts import (
    LAYOUT,
    RELEVANCE,
    counterparts,
    laid_out_both_ways,
    replies_exchanged,
)
from reward_server.reward_models.dataset import Dataset, PreferredPair
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.style import leans, reply_of, style_of
from tests.reward_models.letters import LetterEncoder
from tests.reward_models.talks import WordCounts, labelled_talks, preferred_talks

JUDGED = preferred_talks()


def test_neither_words_nor_style_of_a_reply_tell_the_better_side() -> None:
    """The sums over pairs are 0, so is the slope of any loss that starts from a head of nothing."""
    relevance = list(replies_exchanged(JUDGED.preferred, LetterEncoder()))
    layout = list(laid_out_both_ways(JUDGED.preferred))
    words = WordCounts()
    sides = [words.features([pair.chosen for pair in relevance]), words.features([pair.rejected for pair in relevance])]
    assert np.abs((sides[0] - sides[1]).sum(axis=0)).max() == 0.0
    styles = [style_of(reply_of(pair.chosen)) - style_of(reply_of(pair.rejected)) for pair in layout]
    assert np.abs(np.sum(styles, axis=0)[1]) < 1e-9
    assert {1, -1} <= {leans(pair) for pair in layout}


def test_a_request_prefers_its_own_reply_to_that_of_another_group() -> None:
    own = {(pair.group, reply_of(pair.chosen)) for pair in JUDGED.preferred}
    found = list(replies_exchanged(JUDGED.preferred, LetterEncoder()))
    assert found
    for pair in found:
        assert (pair.group, reply_of(pair.chosen)) in own
        assert reply_of(pair.rejected) in {reply for group, reply in own if group != pair.group}


def test_sets_have_their_weight_and_stand_behind_the_judged_pairs() -> None:
    found = counterparts(JUDGED, LetterEncoder(), "answers")
    assert found is not None
    total = sum(pair.weight for pair in JUDGED.preferred)
    assert sum(pair.weight for pair in found.pairs) == pytest.approx((LAYOUT + RELEVANCE) * total)
    words = WordCounts()
    everything = [*JUDGED.conversations(), *found.conversations()]
    features = dict(zip([each.digest for each in everything], words.features(everything), strict=True))
    judged = ExampleMatrices.of(JUDGED, features, JUDGED.heads, words.width)
    both = found.beside(judged, features)
    n = len(judged.chosen)
    assert np.array_equal(both.chosen[:n], judged.chosen)
    assert both.chosen.shape == both.rejected.shape == (n + len(found.pairs), words.width)
    assert both.targets.shape == both.weights.shape == (n + len(found.pairs),)


def test_there_are_none_of_labels_and_none_where_answers_earn() -> None:
    assert counterparts(labelled_talks(), LetterEncoder(), "answers") is None
    sides = [
        Conversation((ConversationMessage("persona", "hi"), ConversationMessage("agent", text)), "Shop: a bike.")
        for text in ("a", "b")
    ]
    pairs = Dataset((), (PreferredPair(sides[0], sides[1], "g"),))
    assert counterparts(pairs, LetterEncoder(), "answers") is None
    assert counterparts(pairs, LetterEncoder(), "words") is not None


def outcome(*shares: float, error: float = 0.0, size: int = 100) -> ValidationScores:
    return ValidationScores(shares, (size,) * len(shares), error)


def test_of_ways_that_order_judged_pairs_alike_the_one_of_most_content_is_kept() -> None:
    plain, content, poor = outcome(0.70, 0.4, 0.4, error=0.02), outcome(0.69, 0.6, 0.7, error=0.02), outcome(0.6, 1, 1)
    assert Chooser.best({"all": plain, "all+counterparts": content, "meaning": poor}) == "all+counterparts"
    assert Chooser.best({"all": outcome(0.70, 0.6, 0.5, error=0.02), "meaning": poor}) == "all"
    assert Chooser.best({"all": outcome(), "meaning": outcome()}) == "meaning"


def test_heads_that_follow_style_are_kept_only_if_no_others_are_there() -> None:
    # Where people prefer what is longer, the best on their pairs is below chance as soon as style says something else.
    style, fair, worse = outcome(0.9, 0.3, 0.9, error=0.02), outcome(0.6, 1, 1), outcome(0.8, 0.2, 0.2)
    assert Chooser.best({"all": style, "meaning": fair}) == "meaning"
    assert Chooser.best({"all": style, "meaning": worse}) == "all"
    few = outcome(0.9, 0.3, 0.9, error=0.02, size=19)
    assert Chooser.best({"all": few, "meaning": fair}) == "all"
