"""Which numbers a configuration may hold: every number of a section, and every number of an objective.

A number outside its range would end a run much later, or train nothing, or the opposite of what is asked for. A test
sees to it that no number of a section is missing here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, without `low` itself if `is_open`."""

    low: float = 0.0
    high: float = math.inf
    is_open: bool = False
    hint: str = ""

    def problem(self, value: float) -> str | None:
        """What to say about a number that is outside; None if it is inside."""
        if self.low <= value <= self.high and not (self.is_open and value == self.low):
            return None
        if self.high < math.inf:
            told = f"must be {'above' if self.is_open else 'at least'} {self.low:g} and at most {self.high:g}"
        elif self.is_open:
            told = f"must be above {self.low:g}"
        else:
            told = "must not be negative" if self.low == 0 else f"must be at least {self.low:g}"
        return told + self.hint


ABOVE_ZERO = Range(is_open=True)
NOT_NEGATIVE = Range()
SHARE = Range(0.0, 1.0)
ANY = Range(-math.inf)

SECTIONS: dict[str, Range] = {
    "server.max_turns": ABOVE_ZERO,
    "server.patience_s": NOT_NEGATIVE,
    "model.layers": ABOVE_ZERO,
    "model.width": ABOVE_ZERO,
    "model.heads": ABOVE_ZERO,
    "model.context": ABOVE_ZERO,
    "model.temperature": ABOVE_ZERO,
    "model.top_p": Range(0.0, 1.0, is_open=True, hint="; 1 leaves nothing out"),
    "model.top_k": Range(hint="; 0 leaves nothing out"),
    "model.max_tokens": ABOVE_ZERO,
    "model.threads": ABOVE_ZERO,
    "warmup.steps": ABOVE_ZERO,
    "warmup.batch": ABOVE_ZERO,
    "warmup.turns": ABOVE_ZERO,
    "warmup.learning_rate": ABOVE_ZERO,
    "rollout.groups": ABOVE_ZERO,
    "rollout.group_size": Range(2, hint=": a group of one has nothing to compare with"),
    "rollout.waves": ABOVE_ZERO,
    "rollout.connections": ABOVE_ZERO,
    "rollout.max_refills": NOT_NEGATIVE,
    "rollout.max_staleness": NOT_NEGATIVE,
    "algorithm.gamma": SHARE,
    "algorithm.entropy": ANY,  # a negative weight sharpens the policy, which is a choice
    "optim.learning_rate": ABOVE_ZERO,
    "optim.weight_decay": NOT_NEGATIVE,
    "optim.clip_norm": Range(is_open=True, hint="; a large number never clips"),
    "optim.minibatches": ABOVE_ZERO,
    "optim.micro_tokens": ABOVE_ZERO,
    "optim.warmup_updates": NOT_NEGATIVE,
    "optim.final_share": SHARE,
    "optim.max_mismatch_kl": Range(hint="; 0 sets no limit"),
    "data.batch": ABOVE_ZERO,
    "data.micro": ABOVE_ZERO,
    "data.held_out_share": SHARE,
    "lora.rank": Range(hint="; 0 trains all weights"),
    "lora.alpha": ABOVE_ZERO,
    "generator.tolerance": ABOVE_ZERO,
    "parallel.zero_stage": Range(1, 3),
    "evaluation.every": ABOVE_ZERO,
    "evaluation.episodes": ABOVE_ZERO,
    "evaluation.samples": NOT_NEGATIVE,
    "evaluation.stop_after": Range(hint="; 0 never stops"),
    "run.updates": ABOVE_ZERO,
    "run.seed": NOT_NEGATIVE,
    "run.checkpoint_every": ABOVE_ZERO,
    "run.keep": ABOVE_ZERO,
}
"""By section and key."""

OBJECTIVE: dict[str, Range] = {
    "eps_low": NOT_NEGATIVE,
    "eps_high": NOT_NEGATIVE,
    "ratio_cap": ABOVE_ZERO,
    "dual_clip": ABOVE_ZERO,
    "tau_positive": ABOVE_ZERO,
    "tau_negative": ABOVE_ZERO,
    "clamp": ABOVE_ZERO,
    "shift": ABOVE_ZERO,
    "square": NOT_NEGATIVE,
    "correction_low": NOT_NEGATIVE,
    "correction_high": ABOVE_ZERO,
    "drop_stale": ANY,
    "beta": NOT_NEGATIVE,
    "positive_nll": NOT_NEGATIVE,
    "positive_from": ANY,
    "max_tokens": ABOVE_ZERO,
    "gamma": SHARE,
    "kl_reward": NOT_NEGATIVE,
    "overlong": SHARE,
    "lam": SHARE,
    "alpha": ABOVE_ZERO,
    "critic_lam": SHARE,
    "critic_rate": ABOVE_ZERO,
    "critic_warmup": NOT_NEGATIVE,
    "value_clip": ABOVE_ZERO,
    "margin_beta": ABOVE_ZERO,
    "smoothing": SHARE,
}
"""By field of `Objective`."""
