"""An update: towards what was rewarded, on the policy's tokens alone, the same however it is cut up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from learner.advantages import ESTIMATORS, per_turn
from learner.model import Policy, rows_of
from learner.objectives import ALGORITHMS
from learner.types import Group, Trajectory
from learner.update import MismatchError, Updater, UpdateSettings
from tests.learner.small import policy, tokenizer, trajectory

WORDS = tokenizer()
GOOD = [("hello", "tell me more."), ("yes", "please tell me why.")]
BAD = [("hello", "go away!"), ("yes", "the sky is blue.")]
MIXED = [("hello", "tell me more."), ("yes", "go away!")]


def groups() -> list[Group]:
    members = (
        trajectory(WORDS, GOOD, [0.5, 1.0]),
        trajectory(WORDS, BAD, [0.0, 0.0]),
        trajectory(WORDS, MIXED, [0.5, 0.25]),
        trajectory(WORDS, BAD[:1], [0.1]),
    )
    return [Group(1, members), Group(2, members[:2])]


def updater(acting: Policy, rate: float = 0.05, reference: Policy | None = None, **settings: Any) -> Updater:
    chosen = UpdateSettings(objective=ALGORITHMS["grpo"], **settings) if "objective" not in settings else None
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=rate)
    return Updater(acting, optimizer, chosen or UpdateSettings(**settings), reference)


def likelihood(acting: Policy, of: Trajectory) -> float:
    with torch.no_grad():
        return float(acting.score(rows_of([of.segments], WORDS.pad_token_id)).logp.sum())


def weights(acting: Policy) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in acting.model.parameters()])


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "dapo", "gspo", "gspo_token", "cispo", "rloo", "sapo", "dppo"])
def test_what_was_rewarded_becomes_more_likely(name: str) -> None:
    acting = policy(WORDS)
    good, bad = trajectory(WORDS, GOOD, [0.5, 1.0]), trajectory(WORDS, BAD, [0.0, 0.0])
    before = likelihood(acting, good) - likelihood(acting, bad)
    metrics = updater(acting, objective=ALGORITHMS[name]).update(groups())
    assert likelihood(acting, good) - likelihood(acting, bad) > before
    assert metrics["groups/used"] == 2
    assert metrics["update/grad_norm"] > 0


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "dapo", "gspo"])
def test_the_step_is_the_same_however_it_is_cut_into_micro_batches(name: str) -> None:
    objective = ALGORITHMS[name]
    whole, cut = policy(WORDS), policy(WORDS)
    updater(whole, objective=objective).update(groups())
    updater(cut, objective=objective, micro_tokens=1).update(groups())
    assert torch.allclose(weights(whole), weights(cut), atol=1e-6)
    assert not torch.equal(weights(whole), weights(policy(WORDS)))


def test_what_the_persona_said_last_before_a_turn_is_not_trained() -> None:
    acting = policy(WORDS)
    rows = rows_of([trajectory(WORDS, GOOD, [0.5, 1.0]).segments], WORDS.pad_token_id)
    logp = acting.score(rows).logp.detach()
    assert float(logp[rows.sampled == 0].abs().max()) == 0.0
    assert int(rows.sampled.sum()) == sum(len(WORDS.encode(line, add_special_tokens=False)) + 1 for _, line in GOOD)


def test_groups_without_a_difference_are_left_out() -> None:
    acting = policy(WORDS)
    before = weights(acting)
    same = Group(1, tuple(trajectory(WORDS, GOOD, [0.5, 0.5]) for _ in range(3)))
    alone = Group(2, (trajectory(WORDS, GOOD, [0.5, 1.0]),), errored=3)
    metrics = updater(acting).update([same, alone, Group(3, (), errored=4)])
    assert metrics == {"groups/all": 3.0, "groups/used": 0.0}
    assert torch.equal(weights(acting), before)


def test_an_errored_member_changes_nothing_for_the_others() -> None:
    full, ragged = policy(WORDS), policy(WORDS)
    members = groups()[0].trajectories[:3]
    updater(full).update([Group(1, members)])
    updater(ragged).update([Group(1, members, errored=5, error_codes=("judge_failed",) * 5)])
    assert torch.equal(weights(full), weights(ragged))


def test_several_steps_use_the_samplers_log_probabilities_as_the_old_ones() -> None:
    acting = policy(WORDS)
    metrics = updater(acting, minibatches=3).update(groups())
    # The made-up log-probabilities are far from this policy's, so the ratio is not 1.
    assert metrics["update/max_ratio"] != pytest.approx(1.0)
    assert metrics["mismatch_k3"] > 1.0


def test_one_step_is_on_policy_and_reports_the_mismatch() -> None:
    metrics = updater(policy(WORDS)).update(groups())
    assert metrics["update/max_ratio"] == pytest.approx(1.0)
    assert metrics["mismatch_k3"] > 0


def test_the_entropy_bonus_keeps_the_policy_open() -> None:
    plain, open_minded = policy(WORDS, spread=3.0), policy(WORDS, spread=3.0)
    for _ in range(5):
        updater(plain).update(groups())
        last = updater(open_minded, entropy=1.0).update(groups())
    assert last["update/entropy"] > updater(plain, rate=0.0).update(groups())["update/entropy"]


def test_a_kl_term_pulls_towards_the_reference() -> None:
    with pytest.raises(ValueError, match="reference"):
        updater(policy(WORDS), objective=ALGORITHMS["grpo_kl"])
    strong = replace(ALGORITHMS["grpo_kl"], beta=10.0)
    reference = policy(WORDS, spread=2.0)
    free, held = policy(WORDS, seed=1, spread=2.0), policy(WORDS, seed=1, spread=2.0)
    for _ in range(3):
        updater(free, objective=ALGORITHMS["grpo"]).update(groups())
        updater(held, objective=strong, reference=reference).update(groups())
    seen = groups()[0].trajectories
    apart = [sum(abs(likelihood(each, of) - likelihood(reference, of)) for of in seen) for each in (held, free)]
    assert apart[0] < apart[1]


@pytest.mark.parametrize("name", ["ppo", "vapo"])
def test_objectives_that_need_a_value_model_are_refused_without_one(name: str) -> None:
    with pytest.raises(ValueError, match="critic"):
        updater(policy(WORDS), objective=ALGORITHMS[name])


def test_credit_per_turn_compares_what_was_gained_from_that_turn_on() -> None:
    rewards = [(0.5, 1.0), (0.0, 0.0), (0.5, 0.25), (0.1,)]
    credit = per_turn(rewards, torch.tensor([0, 0, 0, 0]), ESTIMATORS["group_mean_only"])
    mean = (1.0 + 0.0 + 0.25 + 0.1) / 4
    assert [row[0] for row in credit] == pytest.approx([1.0 - mean, -mean, 0.25 - mean, 0.1 - mean])
    later = (0.5 + 0.0 - 0.25) / 3
    assert [row[1] for row in credit[:3]] == pytest.approx([0.5 - later, -later, -0.25 - later])


def test_credit_per_turn_does_not_mix_groups() -> None:
    rewards = [(0.0, 1.0), (0.0, 0.0), (0.9, 0.9), (0.3, 0.3)]
    apart = per_turn(rewards, torch.tensor([0, 0, 1, 1]), ESTIMATORS["group_mean_only"])
    assert [row[1] for row in apart] == pytest.approx([0.5, -0.5, 0.0, 0.0])


def test_a_gain_counts_less_for_the_turns_before_it() -> None:
    rewards = [(0.0, 0.0, 0.8), (0.0, 0.0, 0.0)]
    credit = per_turn(rewards, torch.tensor([0, 0]), ESTIMATORS["group_mean_only"], gamma=0.5)
    assert credit[0] == pytest.approx([0.1, 0.2, 0.4])
    assert credit[1] == pytest.approx([-0.1, -0.2, -0.4])


def test_per_turn_credit_reaches_the_tokens_of_its_turn() -> None:
    acting = policy(WORDS)
    mixed = trajectory(WORDS, MIXED, [0.5, 0.1])
    before = rows_of([mixed.segments], WORDS.pad_token_id)
    with torch.no_grad():
        old = acting.score(before).logp.clone()
    updater(acting, rate=0.02, credit="to_go").update([Group(1, (mixed, trajectory(WORDS, GOOD, [0.5, 1.0])))])
    with torch.no_grad():
        change = acting.score(before).logp - old
    second = before.sampled[0].nonzero().flatten()[-4:]
    assert float(change[0, second].sum()) < 0


# --- sampler and trainer too far apart ----------------------------------------------------------


@pytest.mark.parametrize("minibatches", [1, 2])
def test_an_update_above_the_limit_of_the_mismatch_is_not_made(minibatches: int) -> None:
    """The log-probabilities of these trajectories are made up: the policy's own are elsewhere."""
    acting = policy(WORDS)
    before = weights(acting)
    made = updater(acting, minibatches=minibatches, max_mismatch_kl=0.05)
    with pytest.raises(MismatchError, match=r"nats per token \(k3 estimate\), above optim.max_mismatch_kl = 0.05"):
        made.update(groups())
    assert torch.equal(weights(acting), before)
    skipping = updater(acting, minibatches=minibatches, max_mismatch_kl=0.05, on_mismatch="skip")
    metrics = skipping.update(groups())
    assert torch.equal(weights(acting), before)
    assert metrics["mismatch_k3"] > 0.05
    assert metrics["update/skipped"] == 1.0
    assert "update/grad_norm" not in metrics
    assert all(parameter.grad is None for parameter in acting.model.parameters())


def test_an_update_below_the_limit_is_the_one_without_a_limit() -> None:
    limited, free = policy(WORDS), policy(WORDS)
    metrics = updater(limited, minibatches=2, max_mismatch_kl=1e6).update(groups())
    updater(free, minibatches=2).update(groups())
    assert torch.equal(weights(limited), weights(free))
    assert "update/skipped" not in metrics


def test_the_mismatch_is_that_of_the_policy_before_the_update() -> None:
    """Of several steps the first has it, whether a correction asks for it or not."""
    rows = [replace(group, trajectories=tuple(map(own, group.trajectories))) for group in groups()]
    metrics = updater(policy(WORDS), rate=1.0, minibatches=3).update(rows)
    assert abs(metrics["mismatch_k3"]) < 1e-9


def own(of: Trajectory) -> Trajectory:
    """With the log-probabilities that the policy has."""
    with torch.no_grad():
        logp = policy(WORDS).score_rows([of.segments])[0].tolist()
    segments, start = [], 0
    for segment in of.segments:
        count = 0 if segment.logp is None else len(segment.ids)
        segments.append(replace(segment, logp=tuple(logp[start : start + count]) or None))
        start += count
    return replace(of, segments=tuple(segments))


def test_only_what_is_measured_before_the_first_step_stops_an_update() -> None:
    """Later parts may be farther apart, but then a part of the update is made."""
    near, far = groups()
    rows = [replace(near, trajectories=tuple(map(own, near.trajectories))), far]
    corrected = replace(ALGORITHMS["grpo"], correction="token_truncate")
    settings = {"objective": corrected, "minibatches": 6, "max_mismatch_kl": 0.05}
    metrics = updater(policy(WORDS), **settings).update(rows)
    assert metrics["mismatch_k3"] > 0.05
    assert metrics["update/grad_norm"] > 0
    with pytest.raises(MismatchError):
        updater(policy(WORDS), **settings).update(rows[::-1])


def constant() -> Group:
    return Group(3, (trajectory(WORDS, GOOD, [0.2, 0.4]), trajectory(WORDS, BAD, [0.4, 0.4])))


@pytest.mark.parametrize("name", ["grpo_kl", "reinforce_pp_baseline", "turn_grpo"])
def test_groups_of_equal_rewards_are_held_to_the_reference_like_all_others(name: str) -> None:
    """With credit per turn the rewards on the way count, so that `constant` there is one of equal ones throughout."""
    same = replace(constant().trajectories[0], turn_rewards=(0.4, 0.4))
    group = Group(3, (same, replace(constant().trajectories[1], turn_rewards=(0.4, 0.4))))
    acting, reference = policy(WORDS), policy(WORDS, seed=1)
    metrics = updater(acting, objective=ALGORITHMS[name], reference=reference).update([group])
    assert (metrics["groups/used"], metrics["groups/all"]) == (0, 1)
    assert (metrics["update/sequences"], metrics["update/grad_norm"] > 0) == (2, True)
    after = updater(acting, objective=ALGORITHMS[name], reference=reference, rate=0.0).update([group])
    assert after["update/kl_reference"] < metrics["update/kl_reference"]


def test_with_a_kl_term_all_groups_count_in_the_denominators_and_their_advantages_are_the_same() -> None:
    found = []
    for more in ([], [constant()]):
        acting, reference = policy(WORDS), policy(WORDS, seed=1)
        chosen = replace(ALGORITHMS["grpo_kl"], beta=1e-9)
        updater(acting, objective=chosen, reference=reference).gradients([*groups(), *more])
        found.append(torch.cat([each.grad.flatten() for each in acting.model.parameters()]))
    few, all_of_them = found
    # Two episodes more without an advantage: the same sum, over eight sequences in place of six.
    torch.testing.assert_close(all_of_them * 8, few * 6, rtol=1e-3, atol=1e-6)


def test_without_another_term_and_with_groups_that_are_played_again_they_are_left_out() -> None:
    for objective in (ALGORITHMS["grpo"], replace(ALGORITHMS["dapo"], kl="k3", beta=0.1)):
        acting = policy(WORDS)
        metrics = updater(acting, objective=objective, reference=policy(WORDS, seed=1)).update([constant()])
        assert metrics == {"groups/all": 1.0, "groups/used": 0.0}
        assert torch.equal(weights(acting), weights(policy(WORDS)))
    told = {name: ALGORITHMS[name].denominator for name in ("grpo", "grpo_kl", "dapo", "vapo", "dr_grpo")}
    assert told == {
        "grpo": "the tokens of the sequence, and the sequences of the groups whose rewards differ",
        "grpo_kl": "the tokens of the sequence, and the sequences of all groups",
        "dapo": "the tokens of the groups whose rewards differ",
        "vapo": "the tokens of all groups",
        "dr_grpo": "max_tokens, and the sequences of the groups whose rewards differ",
    }
