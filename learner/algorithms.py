"""Algorithms are data: each name is a row of choices, and nothing else in the code asks for a name.

    loss = Aggregate over tokens [ c * surrogate(ratio, A) + beta * KL ] + mu * NLL of good sequences

A row chooses the advantage (by name, see `advantages`), the level of the ratio, the gate that
bounds it, the aggregation, the correction `c` for a sampler that differs from the learner, and the
KL term; and what belongs to the algorithm beside its loss: a critic, sampling groups again,
shaping of overlong turns. Defaults are those of the papers. Needs no torch.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

Advantage = Literal[
    "group_z_score",
    "group_mean_only",
    "batch_std",
    "leave_one_out",
    "mean_normalised",
    "group_mean_batch_whitened",
    "dimension_z_scores",
    "token_return_whitened",
    "gae",
    "gae_length_adaptive",
    "none",
]
RatioLevel = Literal["token", "sequence_mean", "sequence_sum", "sequence_then_token"]
Gate = Literal["clip", "clip_weight", "sigmoid", "one_sided_clamp", "probability_shift", "gamma_weight", "none"]
Aggregation = Literal["sequence_mean_of_token_mean", "token_mean", "constant", "sequence_mean_of_token_sum"]
Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask", "geometric_mask"]
Kl = Literal["none", "k2", "k3", "k3_weighted"]
Kind = Literal["reward", "preference", "imitation"]
Credit = Literal["episode", "to_go"]

TOKEN_ADVANTAGES = ("token_return_whitened", "gae", "gae_length_adaptive")
"""Computed from rewards per token over the whole batch: groups are not compared, and none is left out."""
CRITIC_ADVANTAGES = ("gae", "gae_length_adaptive")
"""Need a critic."""


AboveZero, NotNegative, Share, AnyNumber = (
    Field(gt=0),
    Field(ge=0),
    Field(ge=0, le=1),
    Field(json_schema_extra={"any": True}),
)
"""What a number of an objective may be, where a configuration sets it."""


@dataclass(frozen=True)
class Objective:
    """One row of the table: the choices of a named algorithm."""

    advantage: Advantage = "group_z_score"
    ratio: RatioLevel = "token"
    gate: Gate = "clip"
    aggregation: Aggregation = "token_mean"
    eps_low: Annotated[float | None, NotNegative] = 0.2
    """Lower bound of the ratio is 1 - eps_low (gate `clip`, `clip_weight`). None: no bound."""
    eps_high: Annotated[float | None, NotNegative] = 0.2
    ratio_cap: Annotated[float | None, AboveZero] = None
    """Two-sided clipping: the cap of the unclipped branch."""
    dual_clip: Annotated[float | None, AboveZero] = None
    """For negative advantages, the maximum of the loss as a multiple of |A|."""
    tau_positive: Annotated[float, AboveZero] = 1.0
    tau_negative: Annotated[float, AboveZero] = 1.05
    """Temperatures of the sigmoid gate."""
    clamp: Annotated[float, AboveZero] = 0.4
    """Bound of the log-ratio (gate `one_sided_clamp`)."""
    shift: Annotated[float, AboveZero] = 0.2
    """Maximum change of a token's probability (gate `probability_shift`)."""
    square: Annotated[float, NotNegative] = 0.0
    """Weight of the squared log-ratio that belongs to the gate `probability_shift`."""
    anchor: Literal["old", "sampler"] = "old"
    """The policy in the denominator of the ratio."""
    correction: Correction = "none"
    correction_low: Annotated[float, NotNegative] = 0.0
    correction_high: Annotated[float, AboveZero] = 2.0
    drop_stale: Annotated[float | None, AnyNumber] = None
    """Drop sequences with A < 0 whose mean (sampler - policy) log-ratio is above this. OPSM."""
    kl: Kl = "none"
    beta: Annotated[float, NotNegative] = 0.0
    positive_nll: Annotated[float, NotNegative] = 0.0
    """Weight mu of the NLL of sequences with rewards of at least `positive_from`; of a pair: its chosen side."""
    positive_from: Annotated[float, AnyNumber] = 0.75
    max_tokens: Annotated[int, AboveZero] = 384
    """The constant L of the aggregation `constant`, in tokens of an episode. A run's configuration sets it to
    `server.max_turns` * `model.max_tokens`, unless `overrides` does."""

    kind: Kind = "reward"
    """What the algorithm learns from: rewards of episodes, pairs in a file, or conversations in a file."""
    credit: Credit = "episode"
    """`episode`: all tokens get the reward of the conversation. `to_go`: each turn gets the gains from that turn on."""
    gamma: Annotated[float, Share] = 1.0
    """Discount: per turn with `to_go`, per token with a critic."""
    kl_reward: Annotated[float, NotNegative] = 0.0
    """Weight of the KL to the reference (k1, per token) that is subtracted from the reward."""
    resample: bool = False
    """Dynamic sampling: replace groups whose rewards are all equal."""
    overlong: Annotated[float, Share] = 0.0
    """Turns lose reward in this last share of the maximum length, up to 1 at the limit. 0: no penalty."""
    lam: Annotated[float, Share] = 0.95
    """Lambda of the policy's advantages (`gae`)."""
    alpha: Annotated[float, AboveZero] = 0.05
    """Of `gae_length_adaptive`: lambda = 1 - 1 / (alpha * tokens), at least 0."""
    critic_lam: Annotated[float, Share] = 1.0
    """Lambda of the critic's targets."""
    critic_rate: Annotated[float, AboveZero] = 2.0
    """The critic's learning rate, as a multiple of the policy's."""
    critic_warmup: Annotated[int, NotNegative] = 0
    """Number of updates at the start in which only the critic is trained, on the observed rewards (lambda 1)."""
    value_clip: Annotated[float | None, AboveZero] = 0.2
    """Maximum change of a value before the critic's loss is clipped."""
    margin_beta: Annotated[float, AboveZero] = 0.1
    """beta of the preference losses."""
    preference: Literal["sigmoid", "ipo"] = "sigmoid"
    smoothing: Annotated[float, Share] = 0.0
    """Label smoothing of the preference loss."""
    margin_weighted: bool = False
    """Weigh each pair by its `margin`."""

    @property
    def needs_critic(self) -> bool:
        """True if the algorithm has a critic."""
        return self.advantage in CRITIC_ADVANTAGES

    @property
    def needs_reference(self) -> bool:
        """True if the loss or the reward needs the initial policy."""
        return bool(self.kl != "none" and self.beta) or self.kl_reward > 0 or self.kind == "preference"

    @property
    def has_other_terms(self) -> bool:
        """True if the loss has a part beside the advantages: a KL term, or the likelihood of good sequences."""
        return bool((self.kl != "none" and self.beta) or self.positive_nll)

    @property
    def denominator(self) -> str:
        """The number that the sum of the loss over tokens is divided by, in words."""
        counted = "all groups" if self.has_other_terms and not self.resample else "the groups whose rewards differ"
        if self.advantage in TOKEN_ADVANTAGES:
            counted = "all groups"
        return _DENOMINATORS[self.aggregation].format(counted=counted)

    @property
    def is_whole_sequence(self) -> bool:
        """True if one number bounds all tokens of a sequence, so that they must share one advantage."""
        return self.ratio in ("sequence_mean", "sequence_sum") or self.gate in ("one_sided_clamp", "gamma_weight")


_DENOMINATORS: dict[Aggregation, str] = {
    "token_mean": "the tokens of {counted}",
    "constant": "max_tokens, and the sequences of {counted}",
    "sequence_mean_of_token_sum": "the sequences of {counted}",
    "sequence_mean_of_token_mean": "the tokens of the sequence, and the sequences of {counted}",
}


def choices() -> dict[str, tuple[str, ...]]:
    """The values that each field of a row may have, where they are names."""
    hints = typing.get_type_hints(Objective)
    return {name: typing.get_args(hint) for name, hint in hints.items() if typing.get_origin(hint) is Literal}


_SEQUENCE: Aggregation = "sequence_mean_of_token_mean"

ALGORITHMS: dict[str, Objective] = {
    "grpo": Objective(aggregation=_SEQUENCE),
    "grpo_kl": Objective(aggregation=_SEQUENCE, kl="k3", beta=0.04),
    "dr_grpo": Objective(advantage="group_mean_only", aggregation="constant"),
    "dapo": Objective(eps_high=0.28, resample=True, overlong=0.2),
    "gspo": Objective(ratio="sequence_mean", eps_low=3e-4, eps_high=4e-4, aggregation=_SEQUENCE),
    "gspo_token": Objective(ratio="sequence_then_token", eps_low=3e-4, eps_high=4e-4, aggregation=_SEQUENCE),
    "luspo": Objective(ratio="sequence_mean", eps_low=3e-4, eps_high=4e-4, aggregation="sequence_mean_of_token_sum"),
    "cispo": Objective(gate="clip_weight", eps_low=None, eps_high=4.0),
    "rloo": Objective(advantage="leave_one_out", gate="none", aggregation="sequence_mean_of_token_sum"),
    "rloo_clip": Objective(advantage="leave_one_out", ratio="sequence_sum", aggregation=_SEQUENCE),
    "ppo": Objective(advantage="gae", dual_clip=3.0, critic_lam=0.95),
    "vapo": Objective(advantage="gae_length_adaptive", eps_high=0.28, positive_nll=0.1, critic_warmup=50),
    "reinforce_pp": Objective(advantage="token_return_whitened", kl_reward=0.01),
    "reinforce_pp_baseline": Objective(advantage="group_mean_batch_whitened", kl="k2", beta=0.01),
    "sapo": Objective(gate="sigmoid", aggregation=_SEQUENCE),
    "gmpo": Objective(gate="one_sided_clamp", aggregation=_SEQUENCE),
    "dppo": Objective(advantage="group_mean_only", gate="probability_shift", anchor="sampler", square=1e-3),
    "vespo": Objective(gate="gamma_weight"),
    "maxrl": Objective(advantage="mean_normalised"),
    "gdpo": Objective(advantage="dimension_z_scores", aggregation=_SEQUENCE),
    "grpo_opsm": Objective(aggregation=_SEQUENCE, drop_stale=0.1),
    "turn_grpo": Objective(advantage="batch_std", credit="to_go", gamma=0.9, kl="k3", beta=0.1, aggregation=_SEQUENCE),
    "dpo": Objective(kind="preference", advantage="none", gate="none"),
    "dpo_margin": Objective(kind="preference", advantage="none", gate="none", margin_weighted=True),
    "ipo": Objective(kind="preference", advantage="none", gate="none", preference="ipo"),
    "sft": Objective(kind="imitation", advantage="none", gate="none"),
}

PAPERS: Mapping[str, str] = {
    "grpo": "GRPO, arXiv 2402.03300, without its KL term",
    "grpo_kl": "GRPO, arXiv 2402.03300",
    "dr_grpo": "Dr. GRPO, arXiv 2503.20783",
    "dapo": "DAPO, arXiv 2503.14476",
    "gspo": "GSPO, arXiv 2507.18071",
    "gspo_token": "GSPO-token, arXiv 2507.18071",
    "luspo": "LUSPO, arXiv 2602.05261",
    "cispo": "CISPO, arXiv 2506.13585, with the bound of ScaleRL, arXiv 2510.13786",
    "rloo": "RLOO, arXiv 2402.14740",
    "rloo_clip": "RLOO with a clipped ratio of the whole sequence, as TRL has it",
    "ppo": "PPO, arXiv 1707.06347, with GAE, arXiv 1506.02438",
    "vapo": "VAPO, arXiv 2504.05118",
    "reinforce_pp": "REINFORCE++, arXiv 2501.03262",
    "reinforce_pp_baseline": "REINFORCE++-baseline, arXiv 2501.03262",
    "sapo": "SAPO, arXiv 2511.20347",
    "gmpo": "GMPO, arXiv 2507.20673",
    "dppo": "DPPO, arXiv 2602.04879",
    "vespo": "VESPO, arXiv 2602.10693",
    "maxrl": "MaxRL, arXiv 2602.02710",
    "gdpo": "GDPO, arXiv 2601.05242: each dimension of the reward is normalised on its own",
    "grpo_opsm": "GRPO with the off-policy sequence mask of DeepSeek-V3.2, arXiv 2512.02556",
    "turn_grpo": "no paper: GRPO's loss, credit per turn, normalisation over the batch and a KL term; used by the demo",
    "dpo": "DPO, arXiv 2305.18290",
    "dpo_margin": "DPO, arXiv 2305.18290, each pair weighted by its margin",
    "ipo": "IPO, arXiv 2310.12036",
    "sft": "maximum likelihood of the assistant's turns",
}
