"""Every objective, estimator and loss against golden numbers made with numpy alone: value and gradient."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from learner import advantages as adv
from learner.objectives import (
    ALGORITHMS,
    LossInputs,
    Objective,
    aggregate,
    chosen_logp_and_entropy,
    correction_weights,
    gamma_weight,
    mismatch_metrics,
    policy_loss,
    preference_loss,
    ratio_metrics,
    value_loss,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden_losses.json").read_text())
INPUTS: dict[str, Any] = GOLDEN["inputs"]
TOLERANCE: float = GOLDEN["tolerance"]["float64"]


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def close(actual: Tensor | float, expected: Any, tolerance: float = TOLERANCE) -> None:
    assert torch.as_tensor(actual, dtype=torch.float64).sub(tensor(expected)).abs().max() <= tolerance


MASK = tensor(INPUTS["mask"])
REWARDS = tensor(INPUTS["rewards"])
OLD = tensor(INPUTS["old_logp"])
VALUES = tensor(INPUTS["values"])
GROUPS = torch.tensor([0] * 4 + [1] * 4)
Z_SCORE = adv.group_z_score(REWARDS, GROUPS)
TOKEN_PATTERN = tensor([0, 1, 0, -1, 1, 0, -1])


def terminal_steps() -> Tensor:
    steps = torch.zeros_like(MASK)
    for row, ends in enumerate(INPUTS["turn_end_index"]):
        steps[row, ends[-1]] = REWARDS[row]
    return steps


def vapo_advantages() -> Tensor:
    lam = adv.vapo_lambda(MASK.sum(1), alpha=0.5)
    return adv.whiten(adv.gae(terminal_steps(), VALUES, MASK, lam=lam), MASK)


def reinforce_pp_advantages() -> Tensor:
    penalty = 0.01 * (OLD - tensor(INPUTS["ref_logp"]))
    return adv.whiten(adv.token_returns(REWARDS, MASK, penalty), MASK)


ROW = ALGORITHMS
GRPO, DAPO = ROW["grpo"], ROW["dapo"]
CASES: dict[str, tuple[Objective, Tensor]] = {
    "grpo": (GRPO, Z_SCORE),
    "ppo_token_mean": (replace(ROW["ppo"], dual_clip=None), Z_SCORE),
    "grpo_kl_k3_beta0.04": (ROW["grpo_kl"], Z_SCORE),
    "grpo_kl_k3_is_corrected_beta0.04": (replace(ROW["grpo_kl"], kl="k3_weighted"), Z_SCORE),
    "dapo": (DAPO, Z_SCORE),
    "dr_grpo": (replace(ROW["dr_grpo"], max_tokens=7), adv.group_mean_only(REWARDS, GROUPS)),
    "grpo_two_sided_delta1.3": (replace(GRPO, ratio_cap=1.3), Z_SCORE),
    "ppo_dual_clip3_negated_advantages": (ROW["ppo"], -Z_SCORE),
    "gspo_paper_eps": (ROW["gspo"], Z_SCORE),
    "gspo_eps_0.05_0.08": (replace(ROW["gspo"], eps_low=0.05, eps_high=0.08), Z_SCORE),
    "gspo_token_per_token_advantages": (
        replace(ROW["gspo_token"], eps_low=0.05, eps_high=0.08),
        Z_SCORE[:, None] + 0.5 * TOKEN_PATTERN,
    ),
    "luspo": (replace(ROW["luspo"], eps_low=0.05, eps_high=0.08), Z_SCORE),
    "cispo_scalerl_max5": (ROW["cispo"], Z_SCORE),
    "cispo_two_sided_0.2_0.28": (replace(ROW["cispo"], eps_low=0.2, eps_high=0.28), Z_SCORE),
    "rloo_trl_sequence_clip": (ROW["rloo_clip"], adv.leave_one_out(REWARDS, GROUPS)),
    "rloo_reinforce": (ROW["rloo"], adv.leave_one_out(REWARDS, GROUPS)),
    "reinforce_pp": (ROW["reinforce_pp"], reinforce_pp_advantages()),
    "sapo": (ROW["sapo"], Z_SCORE),
    "gmpo_0.4": (ROW["gmpo"], Z_SCORE),
    "dppo_tv_prime": (ROW["dppo"], adv.group_mean_only(REWARDS, GROUPS)),
    "dapo_tis_token_truncate_2": (replace(DAPO, correction="token_truncate"), Z_SCORE),
    "dapo_icepop_token_mask_0.5_2": (replace(DAPO, correction="token_mask", correction_low=0.5), Z_SCORE),
    "dapo_tis_sequence_truncate_2": (replace(DAPO, correction="sequence_truncate"), Z_SCORE),
    "dapo_mis_sequence_mask_3": (replace(DAPO, correction="sequence_mask", correction_high=3.0), Z_SCORE),
    "dapo_mis_geometric_mask_0.99_1.01": (
        replace(DAPO, correction="geometric_mask", correction_low=0.99, correction_high=1.01),
        Z_SCORE,
    ),
    "grpo_opsm_0.1": (ROW["grpo_opsm"], Z_SCORE),
    "vespo": (ROW["vespo"], Z_SCORE),
    "vapo_policy": (ROW["vapo"], vapo_advantages()),
}


def inputs(advantages: Tensor, rows: slice = slice(None), **totals: int) -> LossInputs:
    return LossInputs(
        old_logp=OLD[rows],
        mask=MASK[rows],
        advantages=advantages[rows],
        sampler_logp=tensor(INPUTS["sampler_logp"])[rows],
        reference_logp=tensor(INPUTS["ref_logp"])[rows],
        rewards=REWARDS[rows],
        **totals,
    )


def test_every_golden_loss_is_checked() -> None:
    assert set(CASES) == set(GOLDEN["losses"])


@pytest.mark.parametrize("name", list(CASES))
def test_loss_and_gradient_are_the_golden_ones(name: str) -> None:
    objective, advantages = CASES[name]
    logp = tensor(INPUTS["logp"]).requires_grad_()
    loss = policy_loss(logp, inputs(advantages), objective).loss
    loss.backward()  # type: ignore[no-untyped-call]
    close(loss.detach(), GOLDEN["losses"][name]["loss"])
    assert logp.grad is not None
    close(logp.grad, GOLDEN["losses"][name]["grad"])


@pytest.mark.parametrize("name", [name for name, case in GOLDEN["losses"].items() if "weights" in case])
def test_correction_weights_are_the_golden_ones(name: str) -> None:
    objective, advantages = CASES[name]
    weights = correction_weights(inputs(advantages), objective)
    assert weights is not None
    close(weights * MASK, (tensor(GOLDEN["losses"][name]["weights"]) * MASK).tolist())


def test_gamma_weights_are_the_golden_ones() -> None:
    log_ratio = (tensor(INPUTS["logp"]) - OLD) * MASK
    close(gamma_weight(log_ratio, Z_SCORE[:, None], MASK)[:, 0], GOLDEN["losses"]["vespo"]["phi"])


@pytest.mark.parametrize("name", ["grpo", "dapo", "dr_grpo", "rloo", "gspo", "cispo"])
def test_micro_batches_add_up_to_the_whole_step(name: str) -> None:
    objective = replace(ROW[name], max_tokens=7)
    whole = tensor(INPUTS["logp"]).requires_grad_()
    policy_loss(whole, inputs(Z_SCORE), objective).loss.backward()  # type: ignore[no-untyped-call]
    parts = tensor(INPUTS["logp"]).requires_grad_()
    totals = {"total_sequences": 8, "total_tokens": int(MASK.sum())}
    for rows in (slice(0, 1), slice(1, 6), slice(6, 8)):
        policy_loss(parts[rows], inputs(Z_SCORE, rows, **totals), objective).loss.backward()  # type: ignore[no-untyped-call]
    assert whole.grad is not None
    assert parts.grad is not None
    close(parts.grad, whole.grad.tolist())


def test_token_mean_divides_by_the_tokens_of_the_step() -> None:
    case = GOLDEN["grad_accumulation"]
    total = 0.0
    for losses in case["micro_token_losses"]:
        row = tensor([losses])
        ones = torch.ones_like(row)
        part = LossInputs(old_logp=row, mask=ones, advantages=row, total_tokens=4)
        total += float(aggregate(row, ones, DAPO, part))
    close(total, case["correct"])


def test_what_the_mask_hides_changes_nothing() -> None:
    hidden = MASK == 0
    logp = torch.where(hidden, torch.full_like(OLD, -50.0), tensor(INPUTS["logp"])).requires_grad_()
    for name, (objective, advantages) in CASES.items():
        logp.grad = None
        loss = policy_loss(logp, inputs(advantages), objective).loss
        loss.backward()  # type: ignore[no-untyped-call]
        close(loss.detach(), GOLDEN["losses"][name]["loss"])
        assert logp.grad is not None
        assert float(logp.grad[hidden].abs().max()) == 0.0


def test_an_objective_that_lacks_its_inputs_says_so() -> None:
    bare = LossInputs(old_logp=OLD, mask=MASK, advantages=Z_SCORE)
    for name in ("dppo", "grpo_opsm", "grpo_kl", "vapo"):
        with pytest.raises(ValueError, match="needs"):
            policy_loss(tensor(INPUTS["logp"]), bare, ROW[name])


def test_value_losses_are_the_golden_ones() -> None:
    new = tensor(GOLDEN["value_loss"]["vnew"])
    # The file's targets are those of lambda 1: the sequence's reward on every sampled token.
    returns = REWARDS[:, None] * MASK
    close(value_loss(new, VALUES, returns, MASK), GOLDEN["value_loss"]["unclipped"])
    close(value_loss(new, VALUES, returns, MASK, clip=0.2), GOLDEN["value_loss"]["clipped_0.2"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sigmoid", {}),
        ("sigmoid_label_smoothing_0.1", {"smoothing": 0.1}),
        ("ipo_beta0.1", {"kind": "ipo"}),
        ("margin_weighted_sigmoid", {"weights": tensor(GOLDEN["dpo"]["margin_weights"])}),
    ],
)
def test_preference_losses_are_the_golden_ones(name: str, options: dict[str, Any]) -> None:
    pair = GOLDEN["dpo"]
    margins = (tensor(pair["policy_chosen"]) - tensor(pair["ref_chosen"])) - (
        tensor(pair["policy_rejected"]) - tensor(pair["ref_rejected"])
    )
    close(preference_loss(margins, beta=pair["beta"], **options), pair[name])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logp_and_entropy_at_a_temperature_are_the_golden_ones(temperature: float) -> None:
    case = GOLDEN["logprob_from_logits"]
    logp, entropy = chosen_logp_and_entropy(tensor(case["logits"]), torch.tensor(case["targets"]), temperature)
    close(logp, case[f"temperature_{temperature}"]["logp"])
    close(entropy, case[f"temperature_{temperature}"]["entropy"])


def test_a_token_that_cannot_be_sampled_leaves_the_entropy_finite() -> None:
    logits = tensor([[0.0, 0.0, float("-inf")]])
    _, entropy = chosen_logp_and_entropy(logits, torch.tensor([0]))
    close(entropy, [0.6931471805599453])


def test_diagnostics_are_the_golden_ones() -> None:
    golden = GOLDEN["diagnostics"]
    log_ratio = (tensor(INPUTS["logp"]) - OLD) * MASK
    ratio = ratio_metrics(log_ratio, Z_SCORE[:, None], MASK, GRPO)
    mismatch = mismatch_metrics(OLD, tensor(INPUTS["sampler_logp"]), MASK)
    close(mismatch["mismatch_k1"], golden["mismatch_kl_k1"])
    close(mismatch["mismatch_k3"], golden["mismatch_kl_k3"])
    close(mismatch["ess"], golden["ess_fraction"])
    close(ratio["clip_share"], golden["clipfrac_0.2_0.2"])
    close(ratio["approx_kl"], golden["approx_kl_k3_policy_old"])
    close(ratio["max_ratio"], golden["max_ratio"])
