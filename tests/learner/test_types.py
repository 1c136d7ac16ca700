"""A trajectory that exists can be trained on."""

from __future__ import annotations

import math

import pytest

from learner.types import Group, Segment, Trajectory

GIVEN, SAID = Segment((1, 2)), Segment((3, 4), (-0.5, 0.0))


def test_sums_are_of_the_policys_own_tokens() -> None:
    trajectory = Trajectory((GIVEN, SAID, GIVEN, SAID), (0.25, 0.5), seed=7)
    assert trajectory.ids == (1, 2, 3, 4, 1, 2, 3, 4)
    assert (trajectory.sampled_tokens, trajectory.turns, trajectory.reward) == (4, 2, 0.5)
    assert Group(7, (trajectory,), errored=1, error_codes=("judge_failed",)).rewards == [0.5]


@pytest.mark.parametrize("logp", [(-0.5,), (-0.5, 0.1), (-0.5, math.nan), (-0.5, -math.inf)])
def test_sampled_tokens_need_log_probabilities(logp: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="sampled"):
        Segment((3, 4), logp)


def test_a_turn_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens"):
        Segment((), ())


@pytest.mark.parametrize(
    ("segments", "rewards"),
    [
        ((SAID,), (0.5,)),
        ((GIVEN,), ()),
        ((), ()),
        ((GIVEN, SAID), ()),
        ((GIVEN, SAID), (0.1, 0.2)),
        ((GIVEN, SAID), (math.nan,)),
        ((GIVEN, SAID), (1.5,)),
        ((GIVEN, SAID), (-0.1,)),
    ],
)
def test_what_cannot_be_trained_on_is_no_trajectory(segments: tuple[Segment, ...], rewards: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"trajectory|rewards"):
        Trajectory(segments, rewards, seed=0)
