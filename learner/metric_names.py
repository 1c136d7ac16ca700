"""What each figure of `metrics.jsonl` is and in what unit, in one table."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, tuple[str, str]] = {
    "reward/mean": ("0 to 1", "reward of the episodes"),
    "reward/std": ("0 to 1", "its standard deviation"),
    "reward/standard_error": ("0 to 1", "of the mean"),
    "reward/COLLECTION/SCENARIO": ("0 to 1", "mean of one scenario, where there are several"),
    "score/DIMENSION": ("0 to 1", "mean of one dimension of the reward"),
    "episodes/scored": ("episodes", "with a reward"),
    "episodes/errored": ("episodes", "failed; in no mean"),
    "turns/mean": ("turns per episode", "of the policy"),
    "turns/truncated": ("turns", "cut off at model.max_tokens"),
    "turns/tool_calls": ("calls", "of tools that were sent"),
    "turns/lossy": ("turns", "whose tokens are no clean text"),
    "tokens/sampled": ("tokens", "that the policy said"),
    "tokens/all": ("tokens", "that it said and read"),
    "tokens/per_turn": ("tokens per turn", "length of the policy's turns"),
    "ends/REASON": ("share of episodes", "that ended so"),
    "groups/all": ("groups", "that were played"),
    "groups/used": ("groups", "whose members differ, so that something is learned"),
    "groups/refills": ("times", "that dynamic sampling played again"),
    "rollout/staleness": ("updates", "made since the policy that played these episodes"),
    "seconds/rollout": ("seconds", "from the first episode to the last answer"),
    "seconds/generating": ("seconds", "of these, spent sampling; the rest is waiting for the server"),
    "seconds/update": ("seconds", "of forward, backward and step"),
    "update/loss": ("", "of the whole step"),
    "update/clip_share": ("share of tokens", "where the gate stops the gradient"),
    "update/approx_kl": ("nats per token", "k3 estimate, from the policy that sampled"),
    "update/max_ratio": ("", "largest ratio, at the objective's level"),
    "update/kl_reference": ("nats per token", "k3 estimate, from the first weights"),
    "update/entropy": ("nats per token", "of what is sampled from"),
    "update/grad_norm": ("", "before clipping"),
    "update/tokens": ("tokens", "trained on"),
    "update/learning_rate": ("", ""),
    "update/skipped": ("0 or 1", "the gradient was no number and the step was left out"),
    "mismatch_k1": ("nats per token", "sampler from learner, k1 estimate"),
    "mismatch_k3": ("nats per token", "sampler from learner, k3 estimate"),
    "generator/gap": (
        "nats",
        "largest difference of sampler and learner in one log-probability, after sending weights",
    ),
    "ess": ("share", "effective sample size of the sampler's tokens for the learner"),
    "critic/loss": ("", "half the mean squared error of the values"),
    "critic/explained_variance": ("up to 1", "of the returns by the values"),
    "critic/grad_norm": ("", "before clipping"),
    "critic/warming_up": ("0 or 1", "the critic learns alone"),
    "fluency/broken": ("share of turns", "that are no language of the warm-up"),
    "fluency/repeated": ("share of turns", "said before, or four words in a row twice"),
    "fluency/reward_on_broken": ("share of reward", "gained on broken turns"),
    "fluency/reference_nll": ("nats per token", "of the policy's turns under the first weights"),
    "preference/accuracy": ("share of pairs", "whose better side gained more"),
    "preference/margin": ("nats", "gain of the better side over the worse"),
    "preference/chosen_gain": ("nats", "of the better side over the first weights"),
}


def units() -> dict[str, str]:
    """Name to unit."""
    return {name: unit for name, (unit, _) in METRICS.items() if unit}
