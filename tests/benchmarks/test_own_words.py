"""The parts of the benchmark of an agent's own words that its tables rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.own_words import Extremes, Way, out_of_fold, with_sentence
from benchmarks.planted_words import GOOD, PROMISES
from reward_server.reward_models.conversation import Conversation, Said
from reward_server.reward_models.dataset import OVERALL
from reward_server.reward_models.encoder import load_encoder
from reward_server.reward_models.heads import Matrix
from tests.reward_models.talks import WordCounts, labelled_talks

TALK = Conversation(
    (Said("persona", "Hello."), Said("agent", "What broke?"), Said("persona", "The lamp."), Said("agent", "I see.")),
    "Lamps: a lamp is broken.",
)


def test_a_sentence_is_added_to_the_agents_last_turn() -> None:
    longer = with_sentence(replace(TALK, turns=(*TALK.turns, Said("persona", "Well."))), "Good to know.")
    said = [turn.text for turn in longer.turns]
    assert said == ["Hello.", "What broke?", "The lamp.", "I see. Good to know.", "Well."]
    assert longer.scenario == TALK.scenario


def test_no_wording_stands_twice_and_both_sides_have_as_many() -> None:
    assert len(set(PROMISES) | set(GOOD)) == len(PROMISES) + len(GOOD) == 2 * len(GOOD)


def test_more_words_lower_no_extreme() -> None:
    extremes = Extremes(load_encoder("all-MiniLM-L6-v2"))
    before, after = extremes.features([TALK, with_sentence(TALK, PROMISES[0])])
    assert (after >= before - 1e-6).all()
    assert (after > before + 1e-3).any()


@pytest.mark.slow
def test_what_own_words_cost_is_what_a_talk_without_them_would_have_more() -> None:
    """Kind words earn here, and the number of words is the column that may only cost."""
    words = WordCounts()
    costs = np.zeros(words.width, dtype=np.bool_)
    costs[-1] = True

    def read(found: Sequence[Conversation]) -> Matrix:
        return words.features(found)

    dataset = labelled_talks(120)
    wordy = [len(row.conversation.turns[1].text.split()) for row in dataset.labelled]
    lengthy = replace(
        dataset,
        labelled=tuple(
            replace(row, scores={OVERALL: max(0.0, 1.0 - count / 10)})
            for row, count in zip(dataset.labelled, wordy, strict=True)
        ),
    )
    folds = [frozenset(sorted(dataset.groups)[fold::4]) for fold in range(4)]
    values, lost = out_of_fold(lengthy, Way("", read, words.emphasis, words.kinds, costs), folds)
    assert np.isfinite(values).all()
    assert np.corrcoef(lost, wordy)[0, 1] > 0.9
    _, free = out_of_fold(lengthy, Way("", read, words.emphasis, words.kinds, np.zeros_like(costs)), folds)
    assert (free == 0.0).all()
