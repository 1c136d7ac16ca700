"""Estimators and GAE against the golden numbers, and the edges that training code trips over."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from learner import advantages as adv
from tests.learner.test_objectives import (
    GOLDEN,
    GROUPS,
    INPUTS,
    MASK,
    REWARDS,
    VALUES,
    close,
    reinforce_pp_advantages,
    tensor,
    terminal_steps,
    vapo_advantages,
)

GAE: dict[str, Any] = GOLDEN["gae"]


def test_sequence_advantages_are_the_golden_ones() -> None:
    golden = GOLDEN["advantages"]
    actual = {
        "grpo_ddof1_eps1e-4": adv.group_z_score(REWARDS, GROUPS),
        "grpo_ddof1_eps1e-6": adv.group_z_score(REWARDS, GROUPS, epsilon=1e-6),
        "grpo_ddof0_eps0": adv.group_z_score(REWARDS, GROUPS, epsilon=0.0, ddof=0),
        "mean_only": adv.group_mean_only(REWARDS, GROUPS),
        "batch_std_ddof1_eps1e-4": adv.batch_std(REWARDS, GROUPS),
        "rloo": adv.leave_one_out(REWARDS, GROUPS),
        "maxrl_mean_normalised": adv.mean_normalised(REWARDS, GROUPS),
        "gdpo_weights_1_0.5": adv.several_rewards([REWARDS, tensor(INPUTS["second_reward"])], [1.0, 0.5], GROUPS),
    }
    assert set(actual) == set(golden)
    for name, values in actual.items():
        close(values, golden[name])


def test_token_advantages_are_the_golden_ones() -> None:
    golden = GOLDEN["token_advantages"]
    baseline = adv.whiten(adv.group_mean_only(REWARDS, GROUPS)[:, None] * MASK, MASK)
    close(baseline, golden["reinforce_pp_baseline_token_whitened"])
    close(reinforce_pp_advantages(), golden["reinforce_pp_k1_beta0.01_whitened"])


def test_generalised_advantages_are_the_golden_ones() -> None:
    steps = terminal_steps()
    usual = adv.gae(steps, VALUES, MASK)
    close(usual, GAE["terminal_gamma1_lambda0.95"]["advantages"])
    close((usual + VALUES) * MASK, GAE["terminal_gamma1_lambda0.95"]["returns"])
    close(adv.whiten(usual, MASK), GAE["whitened_lambda0.95"]["advantages"])
    monte_carlo = adv.gae(steps, VALUES, MASK, lam=1.0)
    close(monte_carlo, GAE["terminal_gamma1_lambda1"]["advantages"])
    close((monte_carlo + VALUES) * MASK, GAE["terminal_gamma1_lambda1"]["returns"])
    per_turn = GAE["per_turn_gamma0.99_lambda0.9"]
    close(adv.gae(tensor(per_turn["rewards_token"]), VALUES, MASK, gamma=0.99, lam=0.9), per_turn["advantages"])


def test_length_adaptive_advantages_are_the_golden_ones() -> None:
    golden = GAE["vapo_decoupled_alpha0.5"]
    lam = adv.vapo_lambda(MASK.sum(1), alpha=0.5)
    close(lam, golden["lambda_policy"])
    raw = adv.gae(terminal_steps(), VALUES, MASK, lam=lam)
    close(raw, golden["policy_advantages"])
    close(vapo_advantages(), adv.whiten(raw, MASK).tolist())
    close((adv.gae(terminal_steps(), VALUES, MASK, lam=1.0) + VALUES) * MASK, golden["value_targets_lambda1"])


def test_the_length_adaptive_lambda_is_never_negative() -> None:
    golden = GOLDEN["vapo_lambda_alpha0.05_clamped_at_0"]
    close(adv.vapo_lambda(tensor([float(length) for length in golden])), list(golden.values()))


@pytest.mark.parametrize("name", list(adv.ESTIMATORS))
def test_a_group_of_one_and_a_constant_group_get_nothing(name: str) -> None:
    estimate = adv.ESTIMATORS[name]
    close(estimate(tensor([0.7]), torch.tensor([0])), GOLDEN["singleton_group"]["expected_advantage"])
    close(estimate(tensor([0.5, 0.5, 0.5, 0.0, 0.0]), torch.tensor([0, 0, 0, 1, 1])), [0.0] * 5)


@pytest.mark.parametrize("name", list(adv.ESTIMATORS))
def test_a_ragged_group_uses_the_members_it_has(name: str) -> None:
    rewards, groups = tensor([0.2, 0.6, 0.7, 0.1, 0.1, 1.0]), torch.tensor([0, 0, 1, 1, 1, 1])
    values = adv.ESTIMATORS[name](rewards, groups)
    close(values[:2].sum() + values[2:].sum(), 0.0, 1e-9)
    assert values[1] > values[0]
    assert values[5] > values[2] > values[3]


def test_only_groups_that_differ_by_more_than_noise_are_informative() -> None:
    case = GOLDEN["dynamic_sampling"]
    kept = {
        tolerance: [name for name, rewards in case["groups"].items() if adv.is_informative(rewards, tolerance)]
        for tolerance in (0.0, 1e-4)
    }
    assert kept[0.0] == case["kept_exact"]
    assert kept[1e-4] == case["kept_tol1e-4"]


def test_the_overlong_penalty_is_the_golden_one() -> None:
    case = GOLDEN["overlong_shaping"]
    for length, penalty in case["penalty"].items():
        assert adv.overlong_penalty(int(length), case["L_max"], case["L_cache"]) == pytest.approx(penalty)
