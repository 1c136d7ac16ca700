"""Fluency says what a reward does not: broken and repeated turns, and how likely they were at first."""

from __future__ import annotations

import pytest

from learner.fluency import FluencyMeter, is_repeated
from tests.learner.small import SCRIPT, policy, tokenizer, trajectory
from trainer_client.chat.tokens import Renderer

WORDS = tokenizer()


def fluency(**given: object) -> FluencyMeter:
    return FluencyMeter(Renderer(WORDS), **given)  # type: ignore[arg-type]


def test_a_turn_of_pairs_that_no_script_has_is_broken_and_what_it_earned_is_told() -> None:
    measure = fluency(known_pairs=FluencyMeter.pairs_of(SCRIPT.texts()))
    fluent = trajectory(WORDS, [("hello", "tell me more."), ("yes", "the sky is blue.")], [0.3, 0.3])
    salad = trajectory(WORDS, [("hello", "sky tell is more away."), ("yes", "go away!")], [0.3, 0.6])
    found = measure.measure([fluent, salad])
    assert found["fluency/broken"] == 0.25
    assert found["fluency/reward_on_broken"] == pytest.approx(0.3 / 0.9)
    assert "fluency/reference_nll" not in found


def test_repetition_is_across_turns_and_within_one() -> None:
    assert is_repeated("Tell me more.", ["please", "tell me more."])
    assert is_repeated("I see it is so and I see it is so", [])
    assert not is_repeated("tell me why", ["tell me more"])
    found = fluency().measure([trajectory(WORDS, [("hello", "go away!"), ("yes", "go away!")], [0.1, 0.1])])
    assert found["fluency/repeated"] == 0.5


def test_strange_turns_are_unlikely_under_the_first_weights() -> None:
    """Two lines, to one of which the reference was trained: the other has the higher cost.

    Without a script no turn is called broken: counts of rare tokens called 44 % of a pretrained model's own turns so.
    """
    import torch

    from learner.model import rows_of

    reference = policy(WORDS)
    usual = trajectory(WORDS, [("hello", "tell me more.")], [0.5])
    strange = trajectory(WORDS, [("hello", "blue more sky away!")], [0.5])
    optimizer = torch.optim.AdamW(reference.model.parameters(), lr=2e-2)
    rows = rows_of(usual.rows, WORDS.pad_token_id)
    for _ in range(40):
        optimizer.zero_grad()
        (-reference.score(rows).logp.sum()).backward()
        optimizer.step()
    found = [fluency(reference=reference).measure([each]) for each in (usual, strange)]
    assert found[0]["fluency/reference_nll"] < 0.5 < 3.0 < found[1]["fluency/reference_nll"]
    assert not {"fluency/broken", "fluency/reward_on_broken"} & {name for each in found for name in each}
