"""The policy losses of the papers: what the rows of `algorithms` choose from.

All functions are pure, take log-probabilities [B, T] with a mask that is 1 on sampled tokens only, and
are checked in loss and gradient against numbers computed without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from learner.algorithms import ALGORITHMS, Gate, Kl, Objective

__all__ = ["ALGORITHMS", "Gate", "Kl", "LossInputs", "LossOutput", "Objective", "policy_loss"]


@dataclass(frozen=True)
class LossInputs:
    """The tensors that a loss needs besides the policy's own log-probabilities; all [B, T] unless said."""

    old_logp: Tensor
    mask: Tensor
    advantages: Tensor
    """[B] or [B, T]."""
    sampler_logp: Tensor | None = None
    reference_logp: Tensor | None = None
    rewards: Tensor | None = None
    """[B]; only for the likelihood of good sequences."""
    total_sequences: int | None = None
    total_tokens: int | None = None
    total_good_tokens: int | None = None
    """Counts of the whole optimiser step, where this is one micro-batch of it."""


@dataclass(frozen=True)
class LossOutput:
    """The loss, and numbers to look at."""

    loss: Tensor
    metrics: dict[str, float] = field(default_factory=dict)


def policy_loss(logp: Tensor, inputs: LossInputs, objective: Objective) -> LossOutput:
    """The loss of one (micro-)batch. Micro-batches that share the totals add up to the whole."""
    mask = inputs.mask
    advantages = _per_token(inputs.advantages, mask)
    anchor = _anchor(inputs, objective)
    log_ratio = torch.where(mask > 0, logp - anchor, torch.zeros_like(logp))
    ratio = _ratio(log_ratio, logp, mask, objective)
    losses = _GATES[objective.gate](_Tokens(logp, anchor, log_ratio, ratio, advantages, mask), objective)
    weights = correction_weights(inputs, objective)
    if weights is not None:
        losses = losses * weights
    if objective.drop_stale is not None:
        losses = losses * _fresh(logp, inputs, advantages, objective.drop_stale)
    losses = losses + _kl_term(logp, ratio, inputs, objective)
    loss = aggregate(losses, mask, objective, inputs)
    if objective.positive_nll:
        loss = loss + objective.positive_nll * _positive_nll(logp, inputs, objective)
    return LossOutput(loss, ratio_metrics(log_ratio, advantages, mask, objective, logp))


def aggregate(losses: Tensor, mask: Tensor, objective: Objective, inputs: LossInputs) -> Tensor:
    """One number from the losses of tokens; denominators are those of the whole optimiser step."""
    sequences = inputs.total_sequences or mask.shape[0]
    losses = losses * mask
    match objective.aggregation:
        case "token_mean":
            return losses.sum() / max(inputs.total_tokens or int(mask.sum()), 1)
        case "constant":
            return losses.sum() / (sequences * objective.max_tokens)
        case "sequence_mean_of_token_sum":
            return losses.sum() / sequences
        case "sequence_mean_of_token_mean":
            return (losses.sum(1) / mask.sum(1).clamp(min=1)).sum() / sequences


def correction_weights(inputs: LossInputs, objective: Objective) -> Tensor | None:
    """c: how much a token counts, given that another engine sampled it. Detached."""
    if objective.correction == "none" or inputs.sampler_logp is None:
        return None
    low, high = objective.correction_low, objective.correction_high
    log_rho = ((inputs.old_logp - inputs.sampler_logp) * inputs.mask).detach()
    rho = log_rho.exp()
    whole = log_rho.sum(1, keepdim=True).exp().expand_as(rho)
    match objective.correction:
        case "token_truncate":
            return rho.clamp(max=high)
        case "token_mask":
            return torch.where((rho >= low) & (rho <= high), rho, torch.zeros_like(rho))
        case "sequence_truncate":
            return whole.clamp(max=high)
        case "sequence_mask":
            return torch.where(whole <= high, whole, torch.zeros_like(whole))
        case "geometric_mask":
            mean = masked_mean(log_rho, inputs.mask).exp()[:, None]
            return torch.where((mean >= low) & (mean <= high), rho, torch.zeros_like(rho))


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the sampled tokens of each sequence."""
    return (values * mask).sum(1) / mask.sum(1).clamp(min=1)


def ratio_metrics(
    log_ratio: Tensor, advantages: Tensor, mask: Tensor, objective: Objective, logp: Tensor | None = None
) -> dict[str, float]:
    """The distance of the policy from the one that sampled; clipped is what the objective's own bound really stops.

    `logp` is needed where the bound is on probabilities (gate `probability_shift`).
    """
    log_ratio = log_ratio.detach()
    ratio, count = _ratio(log_ratio, log_ratio, mask, objective), mask.sum().clamp(min=1)
    k3 = ((-log_ratio).exp() - 1 + log_ratio) * mask
    outside = _outside(log_ratio, ratio, advantages, objective)
    if objective.gate == "probability_shift" and logp is not None:
        outside = _shifted(logp.detach(), logp.detach() - log_ratio, advantages, objective)
    return {
        "clip_share": float((outside & (mask > 0)).sum() / count),
        "approx_kl": float(k3.sum() / count),
        "max_ratio": float((ratio * mask).max()) if mask.numel() else 0.0,
    }


def _outside(log_ratio: Tensor, ratio: Tensor, advantages: Tensor, objective: Objective) -> Tensor:
    """The tokens where the bound takes the gradient away (or, for a clipped weight, holds it), by the ratio."""
    up, down = advantages > 0, advantages < 0
    match objective.gate:
        case "clip":
            low = 1 - (objective.eps_low if objective.eps_low is not None else 1.0)
            high = 1 + (objective.eps_high if objective.eps_high is not None else float("inf"))
            return ((ratio < low) & down) | ((ratio > high) & up)
        case "clip_weight":
            return _bounded(ratio, objective) != ratio
        case "one_sided_clamp":
            return ((log_ratio > objective.clamp) & up) | ((log_ratio < -objective.clamp) & down)
        case _:
            return torch.zeros_like(ratio, dtype=torch.bool)


def mismatch_metrics(old_logp: Tensor, sampler_logp: Tensor, mask: Tensor) -> dict[str, float]:
    """The distance of the learner's log-probabilities from the sampler's for the same tokens."""
    log_rho, count = (old_logp - sampler_logp) * mask, mask.sum().clamp(min=1)
    rho = log_rho.exp()
    ess = ((rho * mask).sum() ** 2) / (((rho**2) * mask).sum() * count)
    return {
        "mismatch_k1": float(-log_rho.sum() / count),
        "mismatch_k3": float(((rho - 1 - log_rho) * mask).sum() / count),
        "ess": float(ess),
    }


# --- beside the policy --------------------------------------------------------------------------


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """Half the mean squared error of the critic; with `clip` the worse of clipped and unclipped."""
    errors = (values - returns) ** 2
    if clip is not None:
        clipped = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.maximum(errors, (clipped - returns) ** 2)
    return 0.5 * (errors * mask).sum() / mask.sum()


def preference_loss(
    margins: Tensor,
    *,
    beta: float = 0.1,
    kind: Literal["sigmoid", "ipo"] = "sigmoid",
    smoothing: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """DPO on (policy - reference) log-probability margins of chosen over rejected; optionally weighted."""
    if kind == "ipo":
        losses = (margins - 1 / (2 * beta)) ** 2
    else:
        losses = -(1 - smoothing) * functional.logsigmoid(beta * margins)
        losses = losses - smoothing * functional.logsigmoid(-beta * margins)
    if weights is None:
        return losses.mean()
    return (losses * weights).sum() / weights.sum()


def chosen_logp_and_entropy(logits: Tensor, targets: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the sampled tokens under the distribution they were sampled from, and its entropy."""
    logp = functional.log_softmax(logits / temperature, dim=-1)
    # A token that cannot be sampled has logp -inf and contributes 0, not nan.
    entropy = -(logp.exp() * logp.clamp(min=torch.finfo(logp.dtype).min)).sum(-1)
    return logp.gather(-1, targets[..., None])[..., 0], entropy


# --- the parts of a policy loss -----------------------------------------------------------------


def _per_token(advantages: Tensor, mask: Tensor) -> Tensor:
    return advantages[:, None].expand_as(mask) if advantages.dim() == 1 else advantages


def _anchor(inputs: LossInputs, objective: Objective) -> Tensor:
    if objective.anchor == "old":
        return inputs.old_logp
    if inputs.sampler_logp is None:
        raise ValueError("this objective needs the sampler's log-probabilities")
    return inputs.sampler_logp


def _ratio(log_ratio: Tensor, logp: Tensor, mask: Tensor, objective: Objective) -> Tensor:
    match objective.ratio:
        case "token":
            return log_ratio.exp()
        case "sequence_mean":
            return masked_mean(log_ratio, mask)[:, None].exp().expand_as(log_ratio)
        case "sequence_sum":
            return (log_ratio * mask).sum(1, keepdim=True).exp().expand_as(log_ratio)
        case "sequence_then_token":
            level = masked_mean(log_ratio, mask)[:, None].detach()
            return (level + logp - logp.detach()).exp()


@dataclass(frozen=True)
class _Tokens:
    """The numbers that a bound sees of each token; all [B, T]."""

    logp: Tensor
    anchor: Tensor
    log_ratio: Tensor
    ratio: Tensor
    advantages: Tensor
    mask: Tensor


def _clip_weight(tokens: _Tokens, objective: Objective) -> Tensor:
    return -_bounded(tokens.ratio, objective).detach() * tokens.advantages * tokens.logp


def _sigmoid(tokens: _Tokens, objective: Objective) -> Tensor:
    tau = _by_sign(tokens.advantages, objective.tau_positive, objective.tau_negative)
    return -(4 / tau) * torch.sigmoid(tau * (tokens.ratio - 1)) * tokens.advantages


def _one_sided_clamp(tokens: _Tokens, objective: Objective) -> Tensor:
    low, high = tokens.log_ratio.clamp(min=-objective.clamp), tokens.log_ratio.clamp(max=objective.clamp)
    held = torch.where(tokens.advantages > 0, high, low)
    return -tokens.advantages * masked_mean(held, tokens.mask)[:, None].exp()


def _probability_shift(tokens: _Tokens, objective: Objective) -> Tensor:
    kept = ~_shifted(tokens.logp, tokens.anchor, tokens.advantages, objective)
    return -tokens.advantages * tokens.ratio * kept + objective.square * tokens.log_ratio**2


def _shifted(logp: Tensor, anchor: Tensor, advantages: Tensor, objective: Objective) -> Tensor:
    return (logp.exp() - anchor.exp()).detach() * advantages.sign() > objective.shift


def _gamma_weight(tokens: _Tokens, objective: Objective) -> Tensor:
    return -gamma_weight(tokens.log_ratio, tokens.advantages, tokens.mask) * tokens.advantages * tokens.logp


def _ungated(tokens: _Tokens, objective: Objective) -> Tensor:
    return -tokens.advantages * tokens.logp


def _by_sign(advantages: Tensor, positive: float, negative: float) -> Tensor:
    # `torch.where` of two plain numbers would be float32, whatever the rest is.
    return torch.where(advantages > 0, torch.full_like(advantages, positive), torch.full_like(advantages, negative))


def _bounded(ratio: Tensor, objective: Objective) -> Tensor:
    low = None if objective.eps_low is None else 1 - objective.eps_low
    high = None if objective.eps_high is None else 1 + objective.eps_high
    return ratio.clamp(min=low, max=high)


def _clipped(tokens: _Tokens, objective: Objective) -> Tensor:
    ratio, advantages = tokens.ratio, tokens.advantages
    free = ratio if objective.ratio_cap is None else ratio.clamp(max=objective.ratio_cap)
    losses = -torch.minimum(free * advantages, _bounded(ratio, objective) * advantages)
    if objective.dual_clip is not None:
        bounded = torch.minimum(losses, -objective.dual_clip * advantages)
        losses = torch.where(advantages < 0, bounded, losses)
    return losses


_GATES: dict[Gate, Callable[[_Tokens, Objective], Tensor]] = {
    "clip": _clipped,
    "clip_weight": _clip_weight,
    "sigmoid": _sigmoid,
    "one_sided_clamp": _one_sided_clamp,
    "probability_shift": _probability_shift,
    "gamma_weight": _gamma_weight,
    "none": _ungated,
}


def gamma_weight(log_ratio: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """VESPO: w^k * exp(lambda * (1 - w)) of the whole sequence's ratio w, detached, steeper for negative A."""
    log_w = (log_ratio * mask).sum(1, keepdim=True).detach()
    power, rate = _by_sign(advantages, 2.0, 3.0), _by_sign(advantages, 3.0, 2.0)
    return (power * log_w + rate * (1 - log_w.exp())).exp()


def _fresh(logp: Tensor, inputs: LossInputs, advantages: Tensor, limit: float) -> Tensor:
    if inputs.sampler_logp is None:
        raise ValueError("this objective needs the sampler's log-probabilities")
    gap = masked_mean(inputs.sampler_logp - logp.detach(), inputs.mask)[:, None]
    return (~((advantages < 0) & (gap > limit))).to(logp)


def _kl_term(logp: Tensor, ratio: Tensor, inputs: LossInputs, objective: Objective) -> Tensor:
    if objective.kl == "none" or objective.beta == 0:
        return torch.zeros_like(logp)
    if inputs.reference_logp is None:
        raise ValueError("a KL term needs the reference's log-probabilities")
    gap = torch.where(inputs.mask > 0, inputs.reference_logp - logp, torch.zeros_like(logp))
    if objective.kl == "k2":
        return objective.beta * 0.5 * gap**2
    k3 = gap.exp() - gap - 1
    return objective.beta * (ratio * k3 if objective.kl == "k3_weighted" else k3)


def _positive_nll(logp: Tensor, inputs: LossInputs, objective: Objective) -> Tensor:
    if inputs.rewards is None:
        raise ValueError("the likelihood term needs the rewards")
    good = inputs.mask * (inputs.rewards >= objective.positive_from)[:, None]
    total = int(good.sum()) if inputs.total_good_tokens is None else inputs.total_good_tokens
    return -(logp * good).sum() / max(total, 1)
