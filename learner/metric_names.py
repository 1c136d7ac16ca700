"""Meaning and unit of each figure of `metrics.jsonl`, in one table."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, tuple[str, str]] = {
    "reward/mean": ("0 to 1", "mean reward of the episodes"),
    "reward/std": ("0 to 1", "standard deviation of the rewards"),
    "reward/standard_error": ("0 to 1", "standard error of the mean reward"),
    "reward/COLLECTION/SCENARIO": ("0 to 1", "mean reward of one scenario, if there are several"),
    "score/DIMENSION": ("0 to 1", "mean of one dimension of the reward"),
    "episodes/scored": ("episodes", "episodes with a reward"),
    "episodes/errored": ("episodes", "failed episodes; not part of any mean"),
    "turns/mean": ("turns per episode", "mean number of turns of the policy"),
    "turns/truncated": ("turns", "turns cut off at model.max_tokens"),
    "turns/tool_calls": ("calls", "tool calls sent to the server"),
    "turns/lossy": ("turns", "turns whose tokens do not decode to clean text"),
    "tokens/sampled": ("tokens", "tokens sampled from the policy"),
    "tokens/all": ("tokens", "tokens that the policy sampled and read"),
    "tokens/per_turn": ("tokens per turn", "mean length of the policy's turns"),
    "ends/REASON": ("share of episodes", "episodes that ended for this reason"),
    "groups/all": ("groups", "groups that were played"),
    "groups/used": (
        "groups",
        "groups whose rewards differ; the others have no advantage, and only what else is in the loss (a KL term)",
    ),
    "groups/refills": ("times", "how often dynamic sampling replaced constant groups"),
    "groups/replayed": ("groups", "groups of past updates that were played again (rollout.curriculum)"),
    "rollout/staleness": ("updates", "age of the policy that played these episodes"),
    "seconds/rollout": ("seconds", "time to play the episodes"),
    "seconds/generating": ("seconds", "part of seconds/rollout spent sampling; the rest is waiting for the server"),
    "seconds/update": ("seconds", "time for forward pass, backward pass and optimiser step"),
    "memory/process": ("bytes", "the most that the process has held so far"),
    "memory/gpu": ("bytes", "the most that torch has held on the GPU since the update before"),
    "update/loss": ("", "loss of the whole step"),
    "update/clip_share": ("share of tokens", "tokens whose gradient the gate stops"),
    "update/approx_kl": (
        "nats per token",
        "KL(policy || policy before the update), k3 over tokens of the latter; 0 if a batch is one step",
    ),
    "update/max_ratio": ("", "largest ratio, per token or per sequence as the objective has it"),
    "update/kl_reference": ("nats per token", "KL to the initial weights, k3 estimate"),
    "update/entropy": ("nats per token", "entropy of the sampling distribution"),
    "update/grad_norm": ("", "norm of the gradient before clipping"),
    "update/tokens": ("tokens", "tokens trained on; the denominator of a token mean"),
    "update/sequences": (
        "sequences",
        "sequences trained on, the denominator of a sequence mean: episodes, or turns if each has a ratio of its own",
    ),
    "update/learning_rate": ("", "learning rate of this update"),
    "update/skipped": (
        "0 or 1",
        "1 if a step was skipped: its gradient was not a number, or the mismatch was above optim.max_mismatch_kl",
    ),
    "own/NAME": ("", "mean of what a plug-in logged with `log_metric` since the record before"),
    "mismatch_k1": ("nats per token", "KL between sampler and learner, k1 estimate"),
    "mismatch_k3": ("nats per token", "KL between sampler and learner, k3 estimate; see optim.max_mismatch_kl"),
    "generator/gap": (
        "nats",
        "difference between sampler and learner in log-probabilities, after sending weights: the largest, or in 16 bits"
        " the mean",
    ),
    "ess": ("share", "effective sample size of the sampled tokens under the learner"),
    "critic/loss": ("", "half the mean squared error of the values"),
    "critic/explained_variance": ("up to 1", "share of the variance of the returns that the values explain"),
    "critic/grad_norm": ("", "norm of the critic's gradient before clipping"),
    "critic/warming_up": ("0 or 1", "1 while only the critic learns"),
    "fluency/broken": (
        "share of turns",
        "turns with three or more pairs of words that the warm-up script never has; of a tiny model only",
    ),
    "fluency/repeated": ("share of turns", "turns said before, or with four words in a row twice"),
    "fluency/reward_on_broken": ("share of reward", "reward gained on broken turns"),
    "fluency/reference_nll": (
        "nats per token",
        "negative log-likelihood of the policy's turns under the initial weights",
    ),
    "preference/accuracy": (
        "share of pairs",
        "pairs whose chosen side gained more than the rejected one; a tie counts half",
    ),
    "preference/margin": ("nats", "gain of the chosen side minus that of the rejected one"),
    "preference/chosen_gain": ("nats", "gain of the chosen side in log-likelihood over the initial weights"),
}


def units() -> dict[str, str]:
    """Name to unit."""
    return {name: unit for name, (unit, _) in METRICS.items() if unit}


_FAMILIES = {"score/": "score/DIMENSION", "ends/": "ends/REASON", "reward/": "reward/COLLECTION/SCENARIO"}


def described(name: str) -> tuple[str, str]:
    """Unit and words of a figure; of a family the words and which member it is, of an unknown figure its name."""
    if name in METRICS:
        return METRICS[name]
    start = next((start for start in _FAMILIES if name.startswith(start)), None)
    if start is None:
        return "", name
    unit, words = METRICS[_FAMILIES[start]]
    return unit, f"{words}: {name.removeprefix(start)}"
