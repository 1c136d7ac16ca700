"""pass^k against a count of all ways to draw k seeds."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest

from learner import passes as of_learner
from reward_server.agents.passes import pass_k


@pytest.mark.parametrize("passed", [(True, True, False, True, False, True, True, True), (True, False, True, True)])
def test_it_is_the_share_of_draws_of_which_every_seed_passes(passed: tuple[bool, ...]) -> None:
    found = pass_k([(len(passed), sum(passed))])
    for k, share in found.items():
        assert share == pytest.approx(fmean(all(draw) for draw in combinations(passed, int(k))), abs=1e-4)
    assert max(map(int, found)) == len(passed)


def test_scenarios_count_alike_and_the_fewest_seeds_say_how_far_k_goes() -> None:
    assert pass_k([(8, 8), (2, 0)]) == {"1": 0.5, "2": 0.5}
    assert pass_k([]) == {}


def test_the_learner_finds_the_same() -> None:
    rewards = [*(("a", reward) for reward in (0.9, 0.2, 0.7, 0.8)), *(("b", reward) for reward in (0.1, 0.9))]
    found = of_learner.pass_k(rewards, 0.7)
    assert {str(k): round(share, 4) for k, share in found.items()} == pass_k([(4, 3), (2, 1)])
